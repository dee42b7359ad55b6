import { afterAll, beforeAll, jest } from '@jest/globals';

import { eventually } from '../expect/eventually.ts';
import { Installation, type InstallationOptions } from './installation.ts';
import { allLeftovers } from './leftovers.ts';
import { machineClass, userDataSecret } from './manifests.ts';

const START_MS = 180_000;
const SCENARIO_MS = 300_000;
const REMOVAL_MS = 90_000;
const KINDS = 'machinedeployments,machinesets,machines,machineclasses,secrets';

/** Makes the body of a test out of what it does with an installation. */
export type Scenario = (run: (installation: Installation) => Promise<void>) => () => Promise<void>;

/**
 * Installs everything before the first test of this file and removes it after the last. Each scenario begins with a MachineClass
 * and its Secret and nothing else; at its end everything is deleted, all kinds at once, and nothing may be left. When it fails,
 * the objects, the Events and the end of each program's log are printed.
 */
export function onOneInstallation(options: InstallationOptions = {}): Scenario {
  jest.setTimeout(SCENARIO_MS);
  let started: Installation | undefined;
  beforeAll(async () => {
    started = await Installation.start(options);
  }, START_MS);
  afterAll(async () => {
    await started?.[Symbol.asyncDispose]();
  }, REMOVAL_MS);

  return (run) => async () => {
    if (started === undefined) throw new Error('the installation did not start');
    await play(started, run);
  };
}

async function play(installation: Installation, run: (installation: Installation) => Promise<void>): Promise<void> {
  try {
    await installation.apply(userDataSecret(installation.userData), machineClass());
    await run(installation);
  } catch (err) {
    process.stderr.write(await situation(installation));
    await remove(installation).catch(() => undefined); // the first failure is the one to tell of
    throw err;
  }
  await remove(installation).catch(async (err: unknown) => {
    process.stderr.write(await situation(installation));
    throw err;
  });
}

async function remove(installation: Installation): Promise<void> {
  await installation.kubectl('delete', KINDS, '--all', '--wait=false');
  let left: readonly string[] = [];
  await eventually(async () => (left = await allLeftovers(installation)).length === 0, {
    timeoutMs: REMOVAL_MS,
    intervalMs: 100,
    describe: () => `nothing to be left, but there is:\n${left.join('\n')}`,
  });
}

async function situation(installation: Installation): Promise<string> {
  const objects = await installation
    .kubectl('get', 'machinedeployments,machinesets,machines,machineclasses,nodes,pods', '-o', 'wide')
    .catch(String);
  const events = await installation.kubectl('get', 'events', '--sort-by=.metadata.creationTimestamp').catch(String);
  return `\n${objects}\n${events}\n${installation.logs()}\n`;
}
