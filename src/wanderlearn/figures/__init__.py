"""The paper's figures: for each, a function that counts and a function that draws what was counted."""
