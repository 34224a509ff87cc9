"""The labelling assistant: a page in the browser where a person sorts pictures with an agent that proposes.

`session` is what a person does (look, decide, skip, undo, rename, merge, forget) on top of an agent and a
`store`, the file that holds the listing, the log of decisions and the classes. Around them: `home` (where all
of it is kept), `listing` (what is in the folder), `sight` (pictures decoded safely), `auto` (when no person
is asked), `export`. `guard`, `app`, `events` and `server` are the web part, and `static/` is the page.
"""
