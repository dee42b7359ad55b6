import type { PhaseSample } from '../view.ts';
import { element, setText, svg } from './dom.ts';
import { bandsOf, ceilingOf, classOfPhase, phasesOf, type PlotArea, totalOf, xOf } from './phase-bands.ts';
import { clockTime, countText } from './texts.ts';

const HOUR_MS = 3_600_000;
/** By whether there is room. */
const HEIGHTS = { wide: 230, narrow: 168 };
const NARROW = 520;
const AXIS = { left: 46, bottom: 20, top: 6, right: 2 };
/** Times below the plot. */
const TICKS_MS = [60, 45, 30, 15, 0].map((minutes) => minutes * 60_000);
/** Rows of the table in place of the plot. */
const TABLE_ROWS = 13;

/** The Machines of the last hour by phase: a plot that a pointer or the arrow keys read, and a table. */
export class PhasePlot {
  readonly #legend = element('ul', { class: 'legend' });
  readonly #drawing = svg('svg', { class: 'plot', 'aria-hidden': 'true' });
  readonly #reader: HTMLElement;
  readonly #readout = element('p', { class: 'readout muted' });
  readonly #table = element('div', { class: 'scroll' });
  #samples: readonly PhaseSample[] = [];
  #nowMs = 0;
  /** Index of the sample that is read; undefined for the last one. */
  #cursor: number | undefined;

  constructor(parent: HTMLElement) {
    this.#reader = element(
      'div',
      {
        class: 'plot-frame',
        attributes: {
          role: 'slider',
          tabindex: '0',
          'aria-label': 'Machines by phase over the last hour',
          'aria-valuemin': '0',
        },
      },
      this.#drawing,
    );
    const more = element(
      'details',
      { class: 'as-table' },
      element('summary', { text: 'Show as a table' }),
      this.#table,
    );
    parent.append(this.#reader, this.#readout, this.#legend, more);
    this.#reader.addEventListener('keydown', (event) => this.#onKey(event));
    this.#reader.addEventListener('pointermove', (event) => this.#onPointer(event));
    this.#reader.addEventListener('pointerleave', () => this.#read(undefined));
    this.#reader.addEventListener('blur', () => this.#read(undefined));
    new ResizeObserver(() => this.#draw()).observe(this.#reader);
  }

  show(samples: readonly PhaseSample[], nowMs: number): void {
    this.#samples = samples;
    this.#nowMs = nowMs;
    this.#cursor = undefined;
    this.#draw();
    this.#showTable();
  }

  #area(): PlotArea {
    const largest = Math.max(0, ...this.#samples.map(totalOf));
    const { clientWidth } = this.#reader;
    return {
      width: Math.max(60, clientWidth - AXIS.left - AXIS.right),
      height: (clientWidth < NARROW ? HEIGHTS.narrow : HEIGHTS.wide) - AXIS.bottom - AXIS.top,
      fromMs: this.#nowMs - HOUR_MS,
      toMs: this.#nowMs,
      ceiling: ceilingOf(largest),
    };
  }

  #draw(): void {
    const area = this.#area();
    const { width, height, ceiling, toMs } = area;
    const whole = width + AXIS.left + AXIS.right;
    this.#drawing.setAttribute('viewBox', `0 0 ${whole} ${height + AXIS.bottom + AXIS.top}`);
    this.#drawing.setAttribute('height', String(height + AXIS.bottom + AXIS.top));
    const inner = svg('g', { transform: `translate(${AXIS.left} ${AXIS.top})` });
    for (const share of [0, 0.5, 1]) {
      const y = height * (1 - share);
      inner.append(svg('line', { class: 'grid', x1: 0, x2: width, y1: y, y2: y }));
      const label = svg('text', { class: 'tick', x: -8, y: y + 4, 'text-anchor': 'end' });
      label.textContent = countText(ceiling * share);
      inner.append(label);
    }
    for (const { phase, path } of bandsOf(this.#samples, area)) {
      inner.append(svg('path', { class: `band ${classOfPhase(phase)}`, d: path }));
    }
    const ticks = TICKS_MS.filter((_tick, i) => width >= NARROW || i % 2 === 0);
    for (const [i, backMs] of ticks.entries()) {
      const anchor = i === 0 ? 'start' : backMs === 0 ? 'end' : 'middle';
      const label = svg('text', {
        class: 'tick',
        x: width * (1 - backMs / HOUR_MS),
        y: height + 15,
        'text-anchor': anchor,
      });
      label.textContent = backMs === 0 ? 'now' : clockTime(new Date(toMs - backMs).toISOString());
      inner.append(label);
    }
    inner.append(svg('line', { class: 'cursor', x1: 0, x2: 0, y1: 0, y2: height, visibility: 'hidden' }));
    this.#drawing.replaceChildren(inner);
    const last = this.#samples.at(-1);
    this.#legend.replaceChildren(
      ...phasesOf(this.#samples).map((phase) =>
        element(
          'li',
          {},
          element('span', { class: `swatch ${classOfPhase(phase)}`, attributes: { 'aria-hidden': 'true' } }),
          element('span', { text: phase }),
          element('strong', { text: countText(last?.phases[phase] ?? 0) }),
        ),
      ),
    );
    this.#read(this.#cursor);
  }

  #read(index: number | undefined): void {
    this.#cursor = index;
    const sample = this.#samples[index ?? this.#samples.length - 1];
    const text = sample === undefined ? 'No samples yet.' : this.#textOf(sample, index === undefined);
    setText(this.#readout, text);
    this.#reader.setAttribute('aria-valuemax', String(Math.max(0, this.#samples.length - 1)));
    this.#reader.setAttribute('aria-valuenow', String(index ?? Math.max(0, this.#samples.length - 1)));
    this.#reader.setAttribute('aria-valuetext', text);
    const line = this.#drawing.querySelector('.cursor');
    if (sample === undefined || index === undefined) return line?.setAttribute('visibility', 'hidden');
    const x = String(Math.max(0, xOf(sample.at, this.#area())));
    for (const [name, value] of Object.entries({ x1: x, x2: x, visibility: 'visible' }))
      line?.setAttribute(name, value);
  }

  #textOf(sample: PhaseSample, isLast: boolean): string {
    const counts = phasesOf(this.#samples).flatMap((phase) => {
      const count = sample.phases[phase] ?? 0;
      return count === 0 ? [] : [`${countText(count)} ${phase}`];
    });
    return `${isLast ? 'Now' : clockTime(sample.at)}: ${counts.length === 0 ? 'no Machines' : counts.join(', ')}`;
  }

  #onKey(event: KeyboardEvent): void {
    const last = this.#samples.length - 1;
    const at = this.#cursor ?? last;
    // A minute with each step, and ten with a page.
    const to = {
      ArrowLeft: at - 4,
      ArrowDown: at - 4,
      ArrowRight: at + 4,
      ArrowUp: at + 4,
      PageDown: at - 40,
      PageUp: at + 40,
      Home: 0,
      End: last,
    }[event.key];
    if (to === undefined || last < 0) return;
    event.preventDefault();
    this.#read(Math.max(0, Math.min(last, to)));
  }

  #onPointer({ clientX }: PointerEvent): void {
    if (this.#samples.length === 0) return;
    const area = this.#area();
    const x = clientX - this.#reader.getBoundingClientRect().left - AXIS.left;
    const distances = this.#samples.map(({ at }) => Math.abs(xOf(at, area) - x));
    this.#read(distances.indexOf(Math.min(...distances)));
  }

  #showTable(): void {
    const phases = phasesOf(this.#samples);
    const every = Math.max(1, Math.ceil(this.#samples.length / TABLE_ROWS));
    const rows = this.#samples.toReversed().filter((_sample, i) => i % every === 0);
    const head = ['Time', ...phases].map((text) => element('th', { text, attributes: { scope: 'col' } }));
    const body = rows.map((sample) =>
      element(
        'tr',
        {},
        element('th', { text: clockTime(sample.at), attributes: { scope: 'row' } }),
        ...phases.map((phase) => element('td', { class: 'number', text: countText(sample.phases[phase] ?? 0) })),
      ),
    );
    this.#table.replaceChildren(
      element('table', {}, element('thead', {}, element('tr', {}, ...head)), element('tbody', {}, ...body)),
    );
  }
}
