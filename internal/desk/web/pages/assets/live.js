// Keeps a page up to date: htmx fetches a part again when the event stream names something that the part shows.
// Everything works without this file, after a reload.
(() => {
  "use strict";
  const stream = document.getElementById("stream");
  const live = document.getElementById("live");
  const alarm = document.getElementById("alarm");
  const retryAfter = 5000;

  // Relative times, in the words of the server.
  function relative(seconds) {
    const far = Math.round(Math.abs(seconds));
    let text = "now";
    if (far < 5) return text;
    if (far < 60) text = `${far} s`;
    else if (Math.round(far / 60) < 60) text = `${Math.round(far / 60)} min`;
    else if (Math.round(far / 3600) < 48) text = `${Math.round(far / 3600)} h`;
    else text = `${Math.round(far / 86400)} days`;
    return seconds < 0 ? `${text} ago` : `in ${text}`;
  }
  // The clock of this machine can differ from the server's, which has rendered the page.
  const ahead = Date.parse(document.body.dataset.now) - Date.now();
  function showTimes() {
    for (const time of document.querySelectorAll("time.ago")) {
      const text = relative((Date.parse(time.dateTime) - Date.now() - ahead) / 1000);
      if (time.textContent !== text) time.textContent = text;
    }
  }
  setInterval(showTimes, 10000);

  // A request that the login no longer permits leads to the login, unless somebody would lose what they have typed.
  document.addEventListener("htmx:before:response", (event) => {
    const response = event.detail.ctx.response;
    if (response.status !== 401) return;
    const typed = [...document.querySelectorAll("textarea")].some((field) => field.value !== field.defaultValue);
    event.preventDefault();
    if (!typed) {
      location.reload();
      return;
    }
    alarm.hidden = false;
    alarm.textContent = "Your login has expired. Nothing that you typed is sent: copy it, and reload the page to log in.";
  });

  // A gate that somebody else has answered leaves the page. Whoever was typing is told who it was, and keeps the text.
  function isTyped(card) {
    return [...card.querySelectorAll("textarea, form.answer [type=radio]")].some((field) =>
      field.type === "radio" ? field.checked !== field.defaultChecked : field.value !== field.defaultValue);
  }
  async function sayClosed(card) {
    const box = document.createElement("section");
    box.className = "flash warn";
    box.setAttribute("role", "alert");
    const add = (name, text) => {
      const element = box.appendChild(document.createElement(name));
      element.textContent = text;
      return element;
    };
    const said = add("p", `${card.dataset.about}: the gate is closed, and your answer was not sent.`);
    add("a", "See the chain").href = card.dataset.chain;
    const typed = card.querySelector("textarea");
    if (typed?.value) {
      add("p", "You had typed:");
      add("p", typed.value).className = "kept";
    }
    document.getElementById("main").prepend(box);
    const answer = await fetch(card.dataset.chain, { headers: { "HX-Request-Type": "partial", "HX-Target": "div#gate" } });
    if (!answer.ok) return;
    const who = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector(".closed");
    if (who) said.textContent += ` ${who.textContent}`;
  }
  const gone = new MutationObserver((changes) => {
    for (const node of changes.flatMap((change) => [...change.removedNodes])) {
      if (node.nodeType !== Node.ELEMENT_NODE) continue;
      const cards = node.matches("article.gate") ? [node] : [...node.querySelectorAll("article.gate")];
      for (const card of cards) {
        if (!document.getElementById(card.id) && isTyped(card)) sayClosed(card);
      }
    }
  });
  for (const part of document.querySelectorAll("#attention, #gate")) gone.observe(part, { childList: true, subtree: true });

  if (!stream) return;
  function say(text) { live.textContent = text; }

  // One stream for a visible tab, and none for a hidden one: a browser has six connections to a server. htmx closes the
  // stream when the tab is hidden, and opens it again at the event after which it was closed.
  let connected = false;
  function listen() {
    if (document.hidden || connected) return;
    htmx.trigger(stream, "listen");
  }
  document.addEventListener("visibilitychange", listen);
  stream.addEventListener("htmx:sse:before:connection", (event) => {
    if (document.hidden) event.detail.connection.cancelled = true;
  });
  stream.addEventListener("htmx:sse:after:connection", () => {
    connected = true;
    say("This page updates itself.");
  });
  stream.addEventListener("htmx:sse:close", () => {
    connected = false;
    setTimeout(listen, retryAfter);
  });
  for (const failed of ["htmx:error", "htmx:response:error", "htmx:sse:error"]) {
    stream.addEventListener(failed, () => {
      say("This page is not up to date: the server does not answer. Trying again.");
      if (!connected) setTimeout(listen, retryAfter);
    });
  }
  setTimeout(listen); // after htmx, which begins so, too
})();
