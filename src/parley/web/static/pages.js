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

// Live pages: the server sends the parts that changed.
(() => {
  const root = document.querySelector("[data-events]");
  if (!root || !window.EventSource) return;
  const lost = document.getElementById("lost");
  let source = null, over = false;

  function put(name, mark, html) {
    const place = root.querySelector(`[data-part="${name}"]`);
    if (!place || place.dataset.mark === mark) return;
    const opened = [...place.querySelectorAll("details")].map((each) => each.open);
    const focused = [...place.querySelectorAll("a,summary,[tabindex]")].indexOf(document.activeElement);
    place.innerHTML = html;
    place.dataset.mark = mark;
    place.querySelectorAll("details").forEach((each, at) => { each.open = Boolean(opened[at]); });
    if (focused >= 0) place.querySelectorAll("a,summary,[tabindex]")[focused]?.focus({preventScroll: true});
  }

  function close() {
    if (source) source.close();
    source = null;
  }

  function open() {
    if (source || over || document.hidden) return;
    source = new EventSource(root.dataset.events);
    source.addEventListener("parts", (event) => {
      lost.hidden = true;
      for (const [name, [mark, html]] of Object.entries(JSON.parse(event.data))) put(name, mark, html);
    });
    source.addEventListener("end", () => { over = true; close(); });
    source.onerror = () => {
      lost.hidden = false;
      if (source && source.readyState === EventSource.CLOSED) {
        close();
        setTimeout(open, 2000);
      }
    };
  }

  // a hidden page needs no stream, and browsers allow few of them
  document.addEventListener("visibilitychange", () => { if (document.hidden) close(); else open(); });
  open();
})();

// Playing: the next question appears by itself, and the clock runs.
{
  let page = document.querySelector("[data-play]");
  let began = performance.now();
  const number = (part) => part.querySelector("input[name=question]")?.value;
  const tick = () => {
    const clock = document.querySelector("[data-left]");
    if (!clock) return;
    const left = Math.max(0, Math.ceil(clock.dataset.left - (performance.now() - began) / 1000));
    const seconds = String(left % 60).padStart(2, "0");
    clock.textContent = `${Math.floor(left / 60)}:${seconds}`;
  };
  const say = (text) => {
    const line = page.querySelector("[data-line]");
    if (line) line.textContent = text;
  };
  // The newest message and the form; the message from its beginning if both do not fit. At the end
  // of the run, the thanks and the scores, which come first on the page.
  const showNewest = () => {
    if ("ended" in page.dataset) return scrollTo(0, 0);
    const last = page.querySelector("#now");
    const form = page.querySelector("form.answer");
    form?.scrollIntoView({ block: "end" });
    if (last && (!form || last.getBoundingClientRect().top < 64)) last.scrollIntoView();
  };
  const renew = async () => {
    const answer = await fetch(location.pathname, { cache: "no-store" });
    if (!answer.ok) return say("This link no longer works. Ask for a new one.");
    const other = new DOMParser().parseFromString(await answer.text(), "text/html");
    const next = other.querySelector("[data-play]");
    page.dataset.version = next.dataset.version;
    // what is being written stays
    if (number(next) && number(next) === number(page)) return;
    document.title = other.title;
    page.replaceWith(document.adoptNode(next));
    page = next;
    began = performance.now();
    tick();
    page.querySelector("h1").focus({ preventScroll: true });
    showNewest();
  };
  if (page && !("ended" in page.dataset)) {
    const news = new EventSource(page.dataset.play);
    const kept = page.querySelector("[data-line]").textContent;
    news.onopen = () => say(kept);
    const follow = async () => {
      try {
        await renew();
      } catch {
        say("The connection was lost. Trying again.");
        setTimeout(follow, 1000);
      }
      if ("ended" in page.dataset) news.close();
    };
    news.onmessage = (event) => {
      if (event.data !== page.dataset.version) follow();
    };
    news.onerror = () =>
      say("The server does not answer. Trying again. If the run was stopped, you need a new link.");
    let sent = false;
    document.addEventListener("submit", (event) => {
      if (sent) event.preventDefault();
      sent = true;
      news.close(); // the next page listens
    });
    if (page.querySelectorAll(".talk li").length > 1) showNewest();
    tick();
    setInterval(tick, 500);
  }
}
