// Dark or light: as the system is, until somebody chooses.

const dark = matchMedia("(prefers-color-scheme: dark)");

function apply(button) {
  const chosen = localStorage.getItem("theme");
  const now = chosen || (dark.matches ? "dark" : "light");
  document.documentElement.dataset.theme = now;
  button.textContent = now === "dark" ? "☀" : "☾";
  button.setAttribute("aria-label", now === "dark" ? "Light colours" : "Dark colours");
}

export function setUpTheme(button) {
  apply(button);
  dark.addEventListener("change", () => apply(button));
  button.onclick = () => {
    localStorage.setItem("theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    apply(button);
  };
}
