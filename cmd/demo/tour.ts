import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';

import type { Component } from '../../hack/control-plane/component.ts';
import type { ControlPlane } from '../../hack/control-plane/control-plane.ts';
import { printable } from '../printable.ts';
import { Keys } from './keys.ts';
import { print, printParagraph, printText } from './lines.ts';
import { DemoError } from './place.ts';
import { machinesDirectory } from '../../hack/control-plane/left-machines.ts';
import { recordedMachines } from './record-machines.ts';
import { TOUR, type TourContext, type TourStep } from './tour-steps.ts';
import { areUp, type MachineWatch } from './watch-machines.ts';

const LOOK_MS = 300;
/** The longest is a rollout of all machines, one at a time. */
const PATIENCE_MS = 10 * 60_000;

export interface TourOptions {
  readonly watch: MachineWatch;
  readonly controlPlane: ControlPlane;
  readonly machines: number;
  /** Folder of the demo, and as it is typed. */
  readonly directory: string;
  readonly typedDirectory: string;
  /** Address of the manager's probes and metrics. */
  readonly manager: string;
  /** Run all steps without asking. */
  readonly yes: boolean;
  readonly signal: AbortSignal;
  /** Told when a step begins and ends: what becomes of machines is shown only meanwhile. */
  readonly onStep: (isRunning: boolean) => void;
}

/** Shows the steps one by one, each when Enter is pressed. Resolves at the end, or when the person quits. Rejects with DemoError. */
export async function takeTour(options: TourOptions): Promise<void> {
  const { yes, signal, onStep } = options;
  const context = contextOf(options);
  using keys = yes ? undefined : new Keys(signal);
  for (const [i, step] of TOUR.entries()) {
    printText('');
    printText(`── ${i + 1} of ${TOUR.length}: ${step.title}`);
    printParagraph(step.explanation);
    const answer = await keys?.ask('Enter: run it   s and Enter: skip it   q and Enter: end the tour ', ['', 's', 'q']);
    if (answer === 'q') break;
    if (answer === 's') continue;
    onStep(true);
    await runStep(step, context);
    onStep(false);
  }
  printText('');
}

async function runStep({ title, run, shows }: TourStep, context: TourContext): Promise<void> {
  const result = await run(context);
  for (const command of shows) await context.type(command);
  printText(`✓ ${title}: ${result}`);
}

function contextOf(options: TourOptions): TourContext {
  const { watch, controlPlane, directory, typedDirectory, manager, signal } = options;
  const until: TourContext['until'] = async (what, isDone) => {
    const late = AbortSignal.timeout(PATIENCE_MS);
    let seen: Parameters<typeof isDone>[0] | undefined;
    try {
      await watch.until(
        (now) => {
          seen = now;
          return isDone(now);
        },
        AbortSignal.any([signal, late]),
      );
    } catch (err) {
      if (signal.aborted || !late.aborted) throw err;
      throw new DemoError(`${what} within ${PATIENCE_MS / 60_000} minutes`, { cause: err });
    }
    if (seen === undefined) throw new Error('nothing was seen');
    return seen;
  };
  return {
    machines: options.machines,
    directory: typedDirectory,
    type: (command) => typeCommand(command, directory, signal),
    say: print,
    until,
    untilUp: (wanted) => until(`${wanted} machines were not up`, (now) => areUp(now, wanted)),
    kubeletOf: (machine) => kubeletOf(directory, machine),
    etcd: programOf(controlPlane.etcd, signal),
    apiserver: programOf(controlPlane.apiserver, signal),
    untilFrozen: (isFrozen) => untilReadiness(manager, !isFrozen, signal),
    manager,
  };
}

/** Runs a command in the shell of the demo. It fails the tour when it fails. */
async function typeCommand(command: string, directory: string, signal: AbortSignal): Promise<string> {
  printText(`\n$ ${command}`);
  return await new Promise((resolve, reject) => {
    const script = `. '${directory.replaceAll("'", String.raw`'\''`)}/env'\n${command}`;
    const child = execFile(
      'sh',
      ['-c', script],
      { signal, env: { ...process.env, COLUMNS: String(process.stdout.columns ?? '') } },
      (err, stdout, stderr) => {
        // As the command has laid it out: a table is no list of commands.
        console.log(printable(`${stdout}${stderr}`.trimEnd()));
        if (signal.aborted) reject(signal.reason as Error);
        else if (err !== null)
          reject(new DemoError(`"${command}" failed: ${stderr.trim() || err.message}`, { cause: err }));
        else resolve(stdout);
      },
    );
    child.stdin?.end();
  });
}

function kubeletOf(directory: string, machine: string): number {
  const found = recordedMachines(machinesDirectory(directory)).find(({ machineName }) => machineName === machine);
  if (found?.process === undefined) throw new DemoError(`the kubelet of ${machine} is not running`);
  return found.process.pid;
}

function programOf(component: Component, signal: AbortSignal): TourContext['etcd'] {
  return {
    pid: () => {
      if (component.pid === undefined) throw new DemoError(`${component.name} is not running`);
      return component.pid;
    },
    stop: () => component.stop('SIGKILL'),
    start: () => component.start(signal),
    async untilRestarted(oldPid) {
      while (component.pid === undefined || component.pid === oldPid) await sleep(LOOK_MS, undefined, { signal });
    },
  };
}

/** Waits until the manager reports that it is ready without anything degraded, or the reverse. */
async function untilReadiness(manager: string, wanted: boolean, signal: AbortSignal): Promise<void> {
  for (;;) {
    const page = await fetch(`${manager}/readyz?verbose`, { signal }).then(
      (response) => response.text(),
      () => undefined,
    );
    if (page !== undefined && !/^\[[!-]\]/m.test(page) === wanted) return;
    await sleep(LOOK_MS, undefined, { signal });
  }
}
