// The two kinds of bars of the charts. Positions are shares of the width, so a bar fits anywhere
// without a script that measures.

import { svg } from './dom.js';

const HEIGHT = 18;

/** A logarithmic scale from milliseconds to a share of the width. Its ends are powers of ten. */
export function logScale(values) {
  const known = values.filter((value) => value > 0);
  const low = Math.floor(Math.log10(Math.max(0.01, Math.min(...known, 1))));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...known, 1))));
  const at = (ms) => {
    const share = (Math.log10(Math.max(ms, 10 ** low)) - low) / (high - low);
    // Room for half a mark at both ends.
    return 2 + 96 * Math.min(1, share);
  };
  const ticks = Array.from({ length: high - low + 1 }, (_, index) => 10 ** (low + index));
  return { at, ticks };
}

/** Parts of a whole, side by side: `[{kind, value}]`. */
export function stackedBar(parts, label) {
  const total = parts.reduce((sum, part) => sum + part.value, 0);
  let at = 0;
  const pieces = parts.map(({ kind, value }) => {
    const width = (100 * value) / total;
    // A rare outcome must still be seen.
    const piece = svg('rect', {
      x: `${at}%`,
      y: 0,
      width: `${Math.max(width, 0.5)}%`,
      height: HEIGHT,
      class: 'piece',
      'data-kind': kind,
    });
    at += width;
    return piece;
  });
  return svg(
    'svg',
    {
      class: 'bar',
      role: 'img',
      'aria-label': label,
      height: HEIGHT,
      width: '100%',
      focusable: 'false',
    },
    pieces,
  );
}

/** A range with marks: half, nine of ten, 99 of 100 calls took at most this long. */
export function rangeBar({ p50, p90, p99, max }, scale, label) {
  const x = (ms) => `${scale.at(ms)}%`;
  const middle = HEIGHT / 2;
  return svg(
    'svg',
    {
      class: 'bar range',
      role: 'img',
      'aria-label': label,
      height: HEIGHT,
      width: '100%',
      focusable: 'false',
    },
    scale.ticks.map((tick) =>
      svg('line', { x1: x(tick), x2: x(tick), y1: 0, y2: HEIGHT, class: 'grid' }),
    ),
    svg('line', { x1: x(p50), x2: x(max), y1: middle, y2: middle, class: 'span' }),
    svg('circle', { cx: x(p50), cy: middle, r: 6, class: 'mark half' }),
    svg('circle', { cx: x(p90), cy: middle, r: 5, class: 'mark most' }),
    svg('circle', { cx: x(p99), cy: middle, r: 4, class: 'mark all' }),
    svg('line', { x1: x(max), x2: x(max), y1: 3, y2: HEIGHT - 3, class: 'end' }),
  );
}

/** The axis of range bars. A narrow one has no room for more than five labels. */
export function axis(scale, words) {
  const last = scale.ticks.length - 1;
  const step = Math.ceil(last / 4);
  // The outer labels stay inside of the bar.
  const anchor = (index) => (index === 0 ? 'start' : index === last ? 'end' : 'middle');
  return svg(
    'svg',
    { class: 'bar axis', height: 16, width: '100%', 'aria-hidden': 'true', focusable: 'false' },
    scale.ticks.map(
      (tick, index) =>
        index % step === 0 &&
        svg(
          'text',
          { x: `${scale.at(tick)}%`, y: 12, class: 'tick', 'text-anchor': anchor(index) },
          words(tick),
        ),
    ),
  );
}
