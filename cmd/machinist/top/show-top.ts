import { keyOf } from '../../../pkg/apis/meta.ts';
import { workOfMachine } from '../../../pkg/fleet/machine-work.ts';
import { CommandCluster } from '../command-cluster.ts';
import { runForExitCode, type Terminal } from '../terminal.ts';
import { version } from '../version.ts';
import { changeLine, changesBetween } from './changes.ts';
import type { TopOptions } from './command.ts';
import { type Key, type Looking, press, START } from './keys.ts';
import { MachineRows, outageOf } from './machine-rows.ts';
import { drawHelp, drawList, drawStory, type Screen, type ScreenSize } from './screen.ts';
import { storyText } from './story-text.ts';
import { painted } from './text.ts';
import { type TopView, viewOf } from './view.ts';
import { WatchedCluster } from './watched-cluster.ts';

/** Changes that come together are shown together. */
const SETTLED_MS = 250;
/** Ages and times of day go on. */
const TICK_MS = 1_000;

/** By convention, of a program that Ctrl-C has ended; who runs it ends as well. */
const INTERRUPTED = 130;

/** Shows what happens until the user has seen enough. Resolves with the exit code. */
export async function showTop(options: TopOptions, terminal: Terminal): Promise<number> {
  let isInterrupted = false;
  const code = await runForExitCode(terminal, async () => {
    await using cluster = await CommandCluster.open({ ...options, env: terminal.env, command: 'top' });
    const isLive = terminal.rows !== undefined && terminal.env['TERM'] !== 'dumb' && options.output === 'text';
    isInterrupted = await (isLive ? showScreen : printChanges)(cluster, options, terminal);
  });
  return isInterrupted ? INTERRUPTED : code;
}

/** Prints a line for each change, until the process is ended. Resolves with whether that was by an interrupt. */
async function printChanges(cluster: CommandCluster, options: TopOptions, terminal: Terminal): Promise<boolean> {
  const rows = new MachineRows();
  const ended = new AbortController();
  let before: TopView | undefined;
  const print = (): void => {
    if (ended.signal.aborted) return; // what was broken off has not changed
    const after = viewOf(watched.facts(), rows, version());
    if (!after.isComplete && before === undefined) return printTroubles(after);
    for (const change of changesBetween(before, after)) {
      terminal.out(
        options.output === 'json' ? JSON.stringify(change) : changeLine(change, options.allNamespaces === true),
      );
    }
    before = after;
  };
  // Before the first lists have arrived, a server that does not answer is said once.
  let said = '';
  const printTroubles = ({ health }: TopView): void => {
    const text = health
      .filter(({ attention }) => attention !== 'ok')
      .map((one) => one.text)
      .join('; ');
    if (text === '' || text === said) return;
    said = text;
    terminal.err(text);
  };
  const watched = new WatchedCluster(cluster, options, whenSettled(print, TICK_MS).soon);
  return await untilStopped(async (signal) => await watched.run(signal), ended);
}

/** Draws the whole screen at each change, until the user has seen enough. Resolves with whether that was said by an interrupt. */
async function showScreen(cluster: CommandCluster, options: TopOptions, terminal: Terminal): Promise<boolean> {
  // React is chosen by it when it is loaded; the other one is slow, and measures each render.
  const { env } = process;
  env['NODE_ENV'] ??= 'production';
  const { openScreen } = await import('./live-screen.ts');
  const { stdout } = process;
  const rows = new MachineRows();
  const ended = new AbortController();
  let looking: Looking = START;
  let screen: Screen | undefined;
  let view: TopView | undefined;
  let isInterrupted = false;

  const size = (): ScreenSize => ({ columns: stdout.columns, rows: stdout.rows });
  let failure: unknown;
  /** The terminal is given back before anything is said of an error. */
  const guarded = (work: () => void) => (): void => {
    try {
      work();
    } catch (err) {
      failure ??= err;
      ended.abort();
    }
  };
  const draw = guarded(() => {
    if (ended.signal.aborted || view === undefined) return;
    screen = drawLooking(looking, view, watched, size());
    looking = { ...looking, top: screen.top };
    live.draw(screen.lines.map((line) => painted(line, terminal.hasColour === true)));
  });
  const refresh = guarded(() => {
    view = viewOf(watched.facts(), rows, version());
    draw();
  });
  const onKey = (key: Key): void => {
    const { keys = [], pageSize = 1, storyEnd = 0 } = screen ?? {};
    const next = press(looking, key, { keys, pageSize, storyEnd });
    if (next === 'quit') {
      isInterrupted = key.name === 'interrupt';
      return ended.abort();
    }
    looking = next;
    draw();
  };

  const settled = whenSettled(refresh, SETTLED_MS);
  const watched = new WatchedCluster(cluster, options, settled.soon);
  const live = openScreen(onKey);
  const tick = setInterval(settled.soon, TICK_MS);
  stdout.on('resize', draw);
  try {
    refresh();
    isInterrupted = (await untilStopped(async (signal) => await watched.run(signal), ended)) || isInterrupted;
  } finally {
    ended.abort();
    clearInterval(tick);
    stdout.off('resize', draw);
    await live.close();
  }
  if (failure !== undefined) throw failure;
  return isInterrupted;
}

function drawLooking(looking: Looking, view: TopView, watched: WatchedCluster, size: ScreenSize): Screen {
  if (looking.screen === 'help') return drawHelp(size);
  if (looking.screen === 'list') return drawList(view, looking, size);
  return drawStory(looking.selected ?? '', storyOf(looking.selected ?? '', watched), looking, size);
}

/** Undefined when the machine does not exist. */
function storyOf(key: string, watched: WatchedCluster): string | undefined {
  const facts = watched.facts();
  const { nowMs, work } = facts;
  const machine = facts.machines.find((one) => keyOf(one) === key);
  if (machine === undefined) return undefined;
  const events = watched.eventsOf(machine.metadata.uid);
  return storyText(machine, events, nowMs, {
    outage: outageOf(machine, facts),
    work: workOfMachine(machine, work),
  });
}

/** Runs until a signal of the system, or `ended`. Resolves with whether the signal was an interrupt. */
async function untilStopped(
  run: (signal: AbortSignal) => Promise<void>,
  ended = new AbortController(),
): Promise<boolean> {
  let isInterrupted = false;
  const stop = (signal: NodeJS.Signals): void => {
    isInterrupted = signal === 'SIGINT';
    ended.abort();
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, stop);
  // Of whoever has started it and listens.
  const parentEnded = (): void => ended.abort();
  process.once('disconnect', parentEnded);
  process.channel?.unref();
  try {
    await run(ended.signal);
    return isInterrupted;
  } finally {
    process.off('disconnect', parentEnded);
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.off(signal, stop);
  }
}

/** Runs something once for all calls within a time. */
function whenSettled(run: () => void, ms: number): { readonly soon: () => void } {
  let timer: NodeJS.Timeout | undefined;
  const now = (): void => {
    timer = undefined;
    run();
  };
  return { soon: () => void (timer ??= setTimeout(now, ms)) };
}
