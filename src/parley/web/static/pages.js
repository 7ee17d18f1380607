// Live updates and keys. Every page works without this file.
"use strict";

// Keys: what has `data-key` is pressed by that key. A form is sent once, however often it is
// pressed.
{
  const isTyping = (target) => target.closest("input, textarea, select") !== null;
  document.addEventListener("keydown", (event) => {
    if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    if (isTyping(event.target)) return;
    const key = CSS.escape(event.key.toLowerCase());
    const found = document.querySelector(`[data-key="${key}"]`);
    if (found) {
      event.preventDefault();
      found.click();
    }
  });
  for (const form of document.querySelectorAll("form.ballot")) {
    let sent = false;
    form.addEventListener("submit", (event) => {
      if (sent) event.preventDefault();
      sent = true;
    });
    window.addEventListener("pageshow", () => { sent = false; });
  }
}
