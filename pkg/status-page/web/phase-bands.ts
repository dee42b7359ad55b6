import type { PhaseSample } from '../view.ts';

/** The order of phases in the plot, from below. */
const PHASES = [
  'Running',
  'Available',
  'InPlaceUpdateSuccessful',
  'InPlaceUpdating',
  'Pending',
  'New',
  'CrashLoopBackOff',
  'Terminating',
  'Unknown',
  'InPlaceUpdateFailed',
  'Failed',
];

/** The phases that occur in any of the samples, from below. */
export function phasesOf(samples: readonly PhaseSample[]): readonly string[] {
  const present = new Set(samples.flatMap(({ phases }) => Object.keys(phases)));
  return [
    ...PHASES.filter((phase) => present.has(phase)),
    ...[...present].filter((one) => !PHASES.includes(one)).toSorted(),
  ];
}

/** A round number that is not smaller, for the upper end of an axis. */
export function ceilingOf(largest: number): number {
  if (largest <= 4) return 4;
  const magnitude = 10 ** Math.floor(Math.log10(largest));
  const step = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].find((factor) => factor * magnitude >= largest) ?? 10;
  return Math.ceil(step * magnitude);
}

export function totalOf({ phases }: PhaseSample): number {
  return Object.values(phases).reduce((sum, count) => sum + count, 0);
}

/** Where things are in the plot, in its units. */
export interface PlotArea {
  readonly width: number;
  readonly height: number;
  readonly fromMs: number;
  readonly toMs: number;
  readonly ceiling: number;
}

export interface Band {
  readonly phase: string;
  /** Of an SVG; one piece for each run of samples without a gap. */
  readonly path: string;
}

/** Samples further apart than this have something between them that nobody has seen. */
const GAP_MS = 60_000;

/** A band for each phase, stacked in their order. */
export function bandsOf(samples: readonly PhaseSample[], area: PlotArea): readonly Band[] {
  const phases = phasesOf(samples);
  const runs = runsOf(samples);
  return phases.map((phase, i) => ({
    phase,
    path: runs.map((run) => pieceOf(run, phases.slice(0, i), phase, area)).join(''),
  }));
}

export function xOf(at: string, { width, fromMs, toMs }: PlotArea): number {
  return (width * (Date.parse(at) - fromMs)) / (toMs - fromMs);
}

function yOf(count: number, { height, ceiling }: PlotArea): number {
  return height - (height * count) / ceiling;
}

function pieceOf(run: readonly PhaseSample[], below: readonly string[], phase: string, area: PlotArea): string {
  const points = run.map(({ at, phases }) => {
    const base = below.reduce((sum, one) => sum + (phases[one] ?? 0), 0);
    return { x: xOf(at, area), low: yOf(base, area), high: yOf(base + (phases[phase] ?? 0), area) };
  });
  const upper = points.map(({ x, high }) => `${round(x)},${round(high)}`);
  const lower = points.toReversed().map(({ x, low }) => `${round(x)},${round(low)}`);
  return `M${[...upper, ...lower].join('L')}Z`;
}

function runsOf(samples: readonly PhaseSample[]): PhaseSample[][] {
  const runs: PhaseSample[][] = [];
  for (const sample of samples) {
    const last = runs.at(-1)?.at(-1);
    if (last !== undefined && Date.parse(sample.at) - Date.parse(last.at) <= GAP_MS) runs.at(-1)?.push(sample);
    else runs.push([sample]);
  }
  return runs;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

export function classOfPhase(phase: string): string {
  return `phase-${PHASES.includes(phase) ? phase : 'other'}`;
}
