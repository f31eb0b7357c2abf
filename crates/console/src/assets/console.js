// Replaces the live part of a page when it has changed. Without this script a reload does the same.
const part = document.querySelector("[data-live]");
let events = null;
let lost = null;

// Says that the part may be old: the console has ended, or the session has.
function say() {
  if (lost) return;
  lost = document.createElement("p");
  lost.className = "notice";
  lost.setAttribute("role", "status");
  lost.textContent = "The console does not answer: this page may be old. Reload it.";
  part.before(lost);
}

function follow() {
  if (events || !part || document.hidden) return;
  events = new EventSource(part.dataset.live);
  events.onopen = () => { lost?.remove(); lost = null; };
  events.onmessage = (event) => { part.innerHTML = event.data; };
  // The browser connects again by itself, unless the console refuses.
  events.onerror = say;
}

// A page in the background holds no connection: a browser has six for a host.
document.addEventListener("visibilitychange", () => {
  if (document.hidden && events) { events.close(); events = null; }
  follow();
});
follow();
