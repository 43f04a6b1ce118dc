// Countdown to the completion URL, which can be cancelled. Only time in the foreground counts.

const line = document.getElementById("leaving");
const said = line.firstElementChild;
let left = Number(line.dataset.wait);

function show() {
  said.textContent = line.dataset.text.replace("{seconds}", left);
}

const clock = setInterval(() => {
  if (document.hidden) return;
  left -= 1;
  show();
  if (left > 0) return;
  clearInterval(clock);
  location.assign(document.getElementById("return").href);
}, 1000);

document.getElementById("stay").addEventListener("click", () => {
  clearInterval(clock);
  line.hidden = true;
  document.getElementById("return").focus();
});

show();
line.hidden = false;
