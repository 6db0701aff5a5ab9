"use strict";
// A line moves over each piano roll while its piece plays; a click in the roll plays from there.
for (const player of document.querySelectorAll("[data-systems]")) {
  const systems = JSON.parse(player.dataset.systems);
  const audio = player.querySelector("audio");
  const stage = player.querySelector(".stage");
  const cursor = stage.querySelector(".cursor");
  // points are [share of the width, seconds]; from one of the two to the other
  const between = (points, from, to, value) => {
    const next = Math.max(1, points.findIndex((point) => value <= point[from]));
    const [a, b] = [points[next - 1], points[next]];
    const share = (value - a[from]) / (b[from] - a[from]);
    return a[to] + (b[to] - a[to]) * Math.min(1, Math.max(0, share));
  };
  const show = () => {
    const now = audio.currentTime;
    const here = systems.find((its) => now < its.times.at(-1)[1]) ?? systems.at(-1);
    cursor.style.left = `${100 * between(here.times, 1, 0, now)}%`;
    cursor.style.top = `${100 * here.top}%`;
    cursor.style.height = `${100 * (here.bottom - here.top)}%`;
    cursor.hidden = false;
    if (!audio.paused) requestAnimationFrame(show);
  };
  audio.addEventListener("play", show);
  audio.addEventListener("seeked", show);
  stage.addEventListener("click", (event) => {
    const box = stage.getBoundingClientRect();
    const [x, y] = [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
    const here = systems.find((its) => y < its.bottom) ?? systems.at(-1);
    audio.currentTime = Math.min(between(here.times, 0, 1, x), audio.duration || 0);
    audio.play();
  });
}
