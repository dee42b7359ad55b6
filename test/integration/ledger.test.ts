import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import { cleanUpDeadRuns, openRun } from '../../hack/control-plane/ledger.ts';
import { identityOf } from '../../hack/control-plane/process-identity.ts';
import { eventually } from '../expect/eventually.ts';

describe('cleaning up after dead runs', () => {
  let ledger: string;
  let directory: string;
  let sleepers: ChildProcess[];

  beforeEach(() => {
    ledger = mkdtempSync(join(tmpdir(), 'machinist-ledger-'));
    directory = mkdtempSync(join(tmpdir(), 'machinist-run-'));
    sleepers = [];
  });

  afterEach(() => {
    for (const sleeper of sleepers) sleeper.kill('SIGKILL');
    rmSync(ledger, { recursive: true, force: true });
    rmSync(directory, { recursive: true, force: true });
  });

  function startSleeper(): number {
    const sleeper = spawn('sleep', ['300'], { stdio: 'ignore' });
    sleepers.push(sleeper);
    return sleeper.pid ?? 0;
  }

  /** A process that owns a run until it is told to die. */
  function startOwner(): { pid: number; die: () => Promise<void> } {
    const pid = startSleeper();
    const die = async (): Promise<void> => {
      sleepers.find((s) => s.pid === pid)?.kill('SIGKILL');
      await eventually(() => identityOf(pid) === undefined);
    };
    return { pid, die };
  }

  /** Changes what is written down about the only run. */
  function edit(change: (text: string) => string): void {
    const file = join(ledger, readdirSync(ledger)[0] ?? '');
    writeFileSync(file, change(readFileSync(file, 'utf8')));
  }

  test('ends the processes and removes the directory of a dead owner', async () => {
    const owner = startOwner();
    const run = openRun(directory, { ledger, ownerPid: owner.pid });
    const pid = startSleeper();
    run.register('kubelet', pid);
    await owner.die();

    const report = await cleanUpDeadRuns({ ledger });

    expect(report).toEqual({ ended: [`kubelet ${pid}`], removed: [directory], left: [] });
    expect(identityOf(pid)).toBeUndefined();
    expect([existsSync(directory), readdirSync(ledger)]).toEqual([false, []]);
  });

  test('lets the caller look into the directory of a dead owner when its processes have ended', async () => {
    const owner = startOwner();
    const pid = startSleeper();
    openRun(directory, { ledger, ownerPid: owner.pid }).register('driver', pid);
    await owner.die();
    const looked: unknown[] = [];
    const beforeRemoval = async (which: string): Promise<void> => {
      looked.push({ which, isThere: existsSync(which), driver: identityOf(pid) });
    };

    await cleanUpDeadRuns({ ledger, beforeRemoval });
    await cleanUpDeadRuns({ ledger, beforeRemoval });

    expect(looked).toEqual([{ which: directory, isThere: true, driver: undefined }]);
    expect(existsSync(directory)).toBe(false);
  });

  test('does nothing while the owner lives', async () => {
    const run = openRun(directory, { ledger });
    const pid = startSleeper();
    run.register('kubelet', pid);

    const report = await cleanUpDeadRuns({ ledger });

    expect(report).toEqual({ ended: [], removed: [], left: [] });
    expect(identityOf(pid)).toBeDefined();
    expect(existsSync(directory)).toBe(true);
  });

  test('spares a process that has taken the pid of a recorded one', async () => {
    const owner = startOwner();
    const pid = startSleeper();
    openRun(directory, { ledger, ownerPid: owner.pid }).register('kubelet', pid);
    await owner.die();
    edit((text) => text.replace(new RegExp(`("pid": ${pid},\\s+"startTime": )"\\d+"`), '$1"1"'));

    const report = await cleanUpDeadRuns({ ledger });

    expect(report.ended).toEqual([]);
    expect(identityOf(pid)).toBeDefined();
  });

  test('leaves a run of another boot or container alone until its directory is gone', async () => {
    openRun(directory, { ledger });
    edit((text) => text.replace(/"scope": "[^"]+"/, '"scope": "elsewhere"'));

    const first = await cleanUpDeadRuns({ ledger });
    expect([first.left.length, existsSync(directory), readdirSync(ledger).length]).toEqual([1, true, 1]);
    rmSync(directory, { recursive: true });

    const second = await cleanUpDeadRuns({ ledger });
    expect([second.left, readdirSync(ledger)]).toEqual([[], []]);
  });

  test('keeps a directory that does not carry the mark of the run', async () => {
    const owner = startOwner();
    openRun(directory, { ledger, ownerPid: owner.pid });
    writeFileSync(join(directory, '.machinist-run'), 'someone else');
    await owner.die();

    const report = await cleanUpDeadRuns({ ledger });

    expect(report.removed).toEqual([]);
    expect(existsSync(directory)).toBe(true);
  });

  test('follows a chain: the processes of a process that it has just ended', async () => {
    const owner = startOwner();
    const driver = startSleeper();
    const kubelet = startSleeper();
    const kubelets = mkdtempSync(join(tmpdir(), 'machinist-run-'));
    openRun(kubelets, { ledger, ownerPid: driver }).register('kubelet', kubelet);
    openRun(directory, { ledger, ownerPid: owner.pid }).register('driver', driver);
    await owner.die();

    const report = await cleanUpDeadRuns({ ledger });

    expect(report.ended.toSorted()).toEqual([`driver ${driver}`, `kubelet ${kubelet}`]);
    expect(report.removed.toSorted()).toEqual([directory, kubelets].toSorted());
  });

  test('forgets what has ended and what was closed', async () => {
    const owner = startOwner();
    const run = openRun(directory, { ledger, ownerPid: owner.pid });
    const pid = startSleeper();
    run.register('kubelet', pid);
    run.unregister(pid);
    await owner.die();
    await cleanUpDeadRuns({ ledger });
    expect(identityOf(pid)).toBeDefined();

    const other = openRun(ledger, { ledger });
    other.register('kubelet', pid);
    other.close();
    other.unregister(pid);

    expect(readdirSync(ledger).filter((name) => name.endsWith('.json'))).toEqual([]);
  });

  test('can be done at once by the process itself', async () => {
    const run = openRun(directory, { ledger });
    const pid = startSleeper();
    run.register('kubelet', pid);

    run.endNow();

    await eventually(() => identityOf(pid) === undefined);
    expect([existsSync(directory), readdirSync(ledger)]).toEqual([false, []]);
  });
});
