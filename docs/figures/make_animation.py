"""Write docs/figures/search.svg: an animation of one search among 949 named colours that narrows down.

The search is real: a simulated person whose favourite is dusty teal answers 18 questions.
Run it anew after a change of the default strategy: python docs/figures/make_animation.py
"""

from html import escape
from pathlib import Path

import numpy as np

import pairseek as ps

TARGET, ANSWERS, SAMPLES = "dusty teal", 18, 160
STEP, LAST = 1.1, 3.5  # seconds of a frame, and of the last one
WIDTH, HEIGHT, MAP, EDGE = 790, 430, 430, 26


def main() -> None:
    """Run the search and write a frame after each answer."""
    items = ps.datasets.colours()
    search = ps.Search(items, response=ps.Logistic(25.0), rng=4)
    person = ps.SimulatedUser(items.coordinates[items.index(TARGET)], search.response, rng=3)
    plane = items.coordinates[:, 1:]
    low, high = plane.min(axis=0), plane.max(axis=0)

    def place(points):
        scaled = (np.asarray(points) - low) / (high - low)
        return np.column_stack(
            [EDGE + scaled[:, 0] * (MAP - 2 * EDGE), HEIGHT - EDGE - scaled[:, 1] * (HEIGHT - 2 * EDGE)]
        )

    frames = []
    for number in range(ANSWERS + 1):
        query = search.ask() if number < ANSWERS else None
        points, weights = search.belief.draw(SAMPLES)
        shown = np.random.default_rng(0).choice(len(points), size=SAMPLES, p=weights / weights.sum())
        dots = place(points[shown, 1:])
        dots = dots[(dots > 6).all(axis=1) & (dots < MAP - 6).all(axis=1)]
        point = place([search.estimate().point[1:]])[0]
        winner = person.answer(items, query) if query else None
        text = panel(items, search, query, winner, number)
        frames.append(f'<path class="belief" d="{dots_path(dots)}"/>{cross(point)}{text}')
        if query:
            search.tell(query, winner=winner)
    total = ANSWERS * STEP + LAST
    styles = [f".f{n}{{animation-delay:{n * STEP:.1f}s}}" for n in range(ANSWERS + 1)]
    share, last = 100 * STEP / total, 100 * LAST / total
    body = "".join(f'<g class="f f{n}{" last" if n == ANSWERS else ""}">{frame}</g>' for n, frame in enumerate(frames))
    order = np.argsort(items.coordinates[:, 0])
    backdrop = "".join(
        f'<path stroke="{items.data["hex"][i]}" d="M{x:.0f} {y:.0f}h0"/>'
        for i, (x, y) in zip(order, place(plane[order]), strict=True)
    )
    target = place([items.coordinates[items.index(TARGET), 1:]])[0]
    svg = f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"
 aria-label="A search narrows down to a favourite colour">
<style>
text{{font-family:system-ui,sans-serif;fill:#16161d}}
.items path{{stroke-width:11;stroke-linecap:round;opacity:.6}}
.belief{{stroke:#16161d;stroke-width:4.5;stroke-linecap:round;opacity:.8}}
.f{{opacity:0;animation:frame {total:.1f}s infinite}}
.last{{animation-name:end}}
@keyframes frame{{0%,{share:.3f}%{{opacity:1}}{share + 0.001:.3f}%,100%{{opacity:0}}}}
@keyframes end{{0%,{last:.3f}%{{opacity:1}}{last + 0.001:.3f}%,100%{{opacity:0}}}}
{"".join(styles)}
@media (prefers-reduced-motion:reduce){{.f{{animation:none}}.last{{opacity:1}}}}
</style>
<rect width="{WIDTH}" height="{HEIGHT}" rx="14" fill="#fff"/>
<g class="items">{backdrop}</g>
<circle cx="{target[0]:.0f}" cy="{target[1]:.0f}" r="12" fill="none" stroke="#fff" stroke-width="5"/>
<circle cx="{target[0]:.0f}" cy="{target[1]:.0f}" r="12" fill="none" stroke="#16161d" stroke-width="2"/>
{body}
</svg>
"""
    Path(__file__).with_name("search.svg").write_text(svg, encoding="utf-8")


def dots_path(points) -> str:
    """Return a path of dots: strokes of no length with round ends."""
    return "".join(f"M{x:.0f} {y:.0f}h0" for x, y in points)


def cross(point) -> str:
    """Return a cross at the estimate."""
    x, y = point
    d = f"M{x - 11:.0f} {y:.0f}h22M{x:.0f} {y - 11:.0f}v22"
    return f'<path d="{d}" stroke="#fff" stroke-width="7"/><path d="{d}" stroke="#16161d" stroke-width="2.5"/>'


def panel(items, search, query, winner, number) -> str:
    """Return what stands beside the map: the two colours and the choice, or the recommended ones."""
    left = MAP + 20
    radius = search.estimate().credible_radius()
    head = f"Question {number + 1}: which do you prefer?" if query else f"After {number} answers"
    parts = [f'<text x="{left}" y="52" font-size="18" font-weight="600">{head}</text>']
    if query:
        shown = [query.left, query.right]
        for place, name in enumerate(shown):
            x = left + place * 148
            edge = 'stroke="#16161d" stroke-width="5"' if name == winner else 'stroke="none"'
            parts.append(f'<rect x="{x}" y="84" width="130" height="150" rx="12" fill="{colour(items, name)}" {edge}/>')
            parts.append(f'<text x="{x + 65}" y="260" font-size="14" text-anchor="middle">{escape(str(name))}</text>')
    else:
        for place, one in enumerate(search.recommend(3)):
            y = 84 + place * 62
            parts.append(f'<rect x="{left}" y="{y}" width="70" height="48" rx="10" fill="{colour(items, one.id)}"/>')
            parts.append(f'<text x="{left + 86}" y="{y + 30}" font-size="17">{escape(str(one.id))}</text>')
    parts.append(f'<text x="{left}" y="318" font-size="15">95 % radius of the belief: {radius:.2f}</text>')
    parts.append(f'<rect x="{left}" y="330" width="278" height="9" rx="4.5" fill="#e4e6ee"/>')
    parts.append(
        f'<rect x="{left}" y="330" width="{min(278, 278 * radius / 0.6):.0f}" height="9" rx="4.5" fill="#0c5f46"/>'
    )
    parts.append(f'<text x="{left}" y="378" font-size="13">dots: where the person may be; +: estimate</text>')
    parts.append(f'<text x="{left}" y="398" font-size="13">circle: the favourite, hidden from the search</text>')
    return "".join(parts)


def colour(items, name) -> str:
    """Return the colour of an item."""
    return items.data["hex"][items.index(name)]


if __name__ == "__main__":
    main()
