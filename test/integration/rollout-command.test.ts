import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { history, pause, restart, resume, runRollout, status, undo } from '../../cmd/machinist/rollout/rollout.ts';
import type { Task } from '../../cmd/machinist/rollout/rollout.ts';
import { writeKubeconfig } from '../../hack/control-plane/kubeconfig.ts';
import { machineDeployments, machines, machineSets } from '../../pkg/kube/client/resource.ts';
import { Program } from '../e2e/program.ts';
import type { Ending } from '../e2e/program.ts';
import { connect } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { MachineSetWorld } from './machine-set-world.ts';

const SAYS_MS = 90_000;
const PATIENCE = { timeoutMs: 90_000 };
const CLASS_2 = { spec: { template: { spec: { class: { kind: 'MachineClass', name: 'c2' } } } } };
const POOL = 'machinedeployment.machine.sapcloud.io/d';

let cache: string;
beforeAll(async () => {
  cache = await mkdtemp(join(tmpdir(), 'machinist-rollout-'));
});
afterAll(() => rm(cache, { recursive: true, force: true }));

function argsOf(world: MachineSetWorld, ...args: string[]): string[] {
  return ['rollout', ...args, `--kubeconfig=${world.connection.kubeconfig}`, '-n', world.namespace.name];
}

/** One subcommand in this process. */
async function rollout(world: MachineSetWorld, task: Task, name = 'd'): Promise<Ending> {
  const said = { stdout: '', stderr: '' };
  const code = await runRollout(
    [name],
    { kubeconfig: world.connection.kubeconfig, namespace: world.namespace.name },
    task,
    {
      out: (line) => (said.stdout += `${line}\n`),
      err: (line) => (said.stderr += `${line}\n`),
      env: {},
    },
  );
  return { code, ...said };
}

const WATCH = { watch: true, timeoutMs: 0, revision: 0 };

async function kubectl(world: MachineSetWorld, ...args: string[]): Promise<string> {
  const program = world.connection.programs.kubectl?.path ?? 'kubectl';
  const access = ['--kubeconfig', world.connection.kubeconfig, '-n', world.namespace.name, '--cache-dir', cache];
  return (await promisify(execFile)(program, [...args, ...access])).stdout;
}

const classes = (world: MachineSetWorld): (string | undefined)[] => world.running().map(({ spec }) => spec.class?.name);

describe('machinist rollout', () => {
  test('shows a rollout as it goes on, its history, and takes it back', async () => {
    await using world = await MachineSetWorld.start({ startMs: 200, stopMs: 200 });
    await world.createDeployment(2);
    expect(await rollout(world, status(WATCH))).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/machine deployment "d" successfully rolled out\n$/),
    });

    await world.patch(machineDeployments, 'd', { spec: { paused: true, ...CLASS_2.spec } });
    await using live = new Program('machinist', argsOf(world, 'status', 'mcd/d', '--timeout=2m'));
    await live.says('0 out of 2 new replicas have been updated', SAYS_MS);
    await world.patch(machineDeployments, 'd', { spec: { paused: false } });
    const ending = await live.ended();
    expect(ending).toMatchObject({ code: 0, stderr: '' });
    const lines = ending.stdout.trimEnd().split('\n');
    expect(lines).toContain(
      'Waiting for machine deployment "d" rollout to finish: 1 out of 2 new replicas have been updated...',
    );
    expect(lines.at(-1)).toBe('machine deployment "d" successfully rolled out');
    expect(new Set(lines).size).toBeGreaterThanOrEqual(3);

    const table = await rollout(world, history(0), 'machinedeployment/d');
    expect(table.stdout).toMatch(
      new RegExp(
        `^${POOL}\\nREVISION +AGE +CLASS +MACHINES +CHANGE-CAUSE\\n1 +\\S+ +c +\\d +<none>\\n2 +\\S+ +c2 +\\d +<none>\\n\\n$`,
      ),
    );
    expect((await rollout(world, history(0, true))).stdout).toBe(
      `${POOL} revision #1 -> #2\n- spec.class.name: "c"\n+ spec.class.name: "c2"\n`,
    );
    expect((await rollout(world, history(1))).stdout).toContain('name: c\n');

    expect(await rollout(world, undo(2))).toMatchObject({
      code: 0,
      stdout: `${POOL} skipped rollback (current template already matches revision 2)\n`,
    });
    expect(await rollout(world, undo(0))).toMatchObject({ code: 0, stdout: `${POOL} rolled back\n` });
    await eventually(() => expect(classes(world)).toEqual(['c', 'c']), PATIENCE);
    expect((await rollout(world, status({ ...WATCH, revision: 1 }))).stderr).toBe(
      'error: desired revision (1) is different from the running revision (3)\n',
    );
  });

  test('names the machine whose deletion holds the rollout up', async () => {
    await using world = await MachineSetWorld.start({ startMs: 200, goes: () => false });
    await world.createDeployment(2);
    await eventually(() => expect(world.running()).toHaveLength(2), PATIENCE);
    const old = world.running().map(({ metadata }) => metadata.name);
    await world.patch(machineDeployments, 'd', CLASS_2);

    await using live = new Program('machinist', argsOf(world, 'status', 'd'));
    await live.says('is being deleted: ', SAYS_MS);
    const held = (await world.list(machines)).filter(({ metadata }) => metadata.deletionTimestamp !== undefined);
    const once = await rollout(world, status({ ...WATCH, watch: false }));

    const [first] = held.map(({ metadata }) => metadata.name);
    expect(old).toContain(first);
    expect(live.stdout).toContain(`Machine ${first} is being deleted: Deletion was requested.\n`);
    expect(once.stdout).toMatch(/^Waiting for .*\nMachine \S+ is being deleted: /);
  });

  test.each(['status', 'history', 'pause'])(
    'tells in one line that no server can be reached, instead of ending unawares: %s',
    async (subcommand) => {
      const nowhere = join(cache, 'nowhere');
      writeKubeconfig(nowhere, { url: 'https://127.0.0.1:1', ca: connect().ca, identity: { token: 'x' } });

      const ending = await Program.run('machinist', ['rollout', subcommand, 'd', `--kubeconfig=${nowhere}`]);

      expect(ending).toMatchObject({
        code: 1,
        stdout: '',
        stderr: expect.stringMatching(/^Unable to connect to the server: .*ECONNREFUSED.*\n$/),
      });
    },
  );

  test('pauses, resumes and restarts', async () => {
    await using world = await MachineSetWorld.start();
    await world.createDeployment(1);
    await eventually(() => expect(world.running()).toHaveLength(1), PATIENCE);
    const [before] = world.running();

    expect(await rollout(world, pause)).toMatchObject({ code: 0, stdout: `${POOL} paused\n` });
    expect(await rollout(world, pause)).toMatchObject({
      code: 1,
      stderr: 'error: machinedeployments.machine.sapcloud.io "d" is already paused\n',
    });
    expect((await rollout(world, restart)).stderr).toContain("can't restart paused machine deployment");
    expect((await rollout(world, undo(0))).code).toBe(1);
    expect(await rollout(world, resume)).toMatchObject({ code: 0, stdout: `${POOL} resumed\n` });
    expect((await rollout(world, resume)).stderr).toContain('"d" is not paused');
    expect(await rollout(world, restart)).toMatchObject({ code: 0, stdout: `${POOL} restarted\n` });
    await eventually(async () => {
      expect(await world.list(machineSets)).toHaveLength(2);
      expect(world.running().map(({ metadata }) => metadata.uid)).not.toContain(before?.metadata.uid);
      expect(world.running()).toHaveLength(1);
    }, PATIENCE);
  });

  test('ends with code 1 when there is nothing to show, or it takes too long', async () => {
    await using world = await MachineSetWorld.start({ startMs: 600_000 });
    const missing = await Program.run('machinist', argsOf(world, 'status', 'd'));
    await world.createDeployment(1);
    const late = await rollout(world, status({ ...WATCH, timeoutMs: 2_000 }));
    const once = await rollout(world, status({ ...WATCH, watch: false }));
    await using live = new Program('machinist', argsOf(world, 'status', 'd'));
    await live.says('Waiting', SAYS_MS);
    await world.delete(machineDeployments, 'd');
    const gone = await live.ended();

    expect(missing).toMatchObject({
      code: 1,
      stderr: 'Error from server (NotFound): machinedeployments.machine.sapcloud.io "d" not found\n',
    });
    expect(late).toMatchObject({ code: 1, stderr: 'error: timed out waiting for the condition\n' });
    expect(late.stdout).toContain('Waiting for machine deployment "d"');
    expect(once).toMatchObject({ code: 0, stdout: expect.stringContaining('0 of 1 updated replicas are available') });
    expect(gone).toMatchObject({ code: 1, stderr: 'error: object has been deleted\n' });
  });
});

test('a rollout that fails says of which machine and why, once', async () => {
  await using world = await MachineSetWorld.start({ comesUp: () => false });
  await world.createDeployment(1);
  const [machine] = await eventually(() => {
    const living = world.living();
    expect(living).toHaveLength(1);
    return living;
  }, PATIENCE);
  const name = machine?.metadata.name ?? '';
  await using live = new Program('machinist', argsOf(world, 'status', 'd', '--timeout=2m'));
  await live.says('Waiting', SAYS_MS);
  await world.setPhase(name, 'CrashLoopBackOff', { type: 'Create', state: 'Failed' });
  await live.says(`1 machine is failing: ${name}: CrashLoopBackOff`, SAYS_MS);
  await world.setPhase(name, 'Running', { type: 'Create', state: 'Successful' });
  const { code, stdout } = await live.ended();

  expect(code).toBe(0);
  expect(stdout.match(/machine is failing/g)).toHaveLength(1);
});

describe('kubectl', () => {
  test('scales, waits for availability, and shows zeros from the first status on', async () => {
    await using world = await MachineSetWorld.start({ startMs: 300 });
    await world.createDeployment(0);
    await eventually(async () => {
      const [, line = ''] = (await kubectl(world, 'get', 'mcd', 'd')).split('\n');
      expect(line.split(/\s+/).slice(0, 5)).toEqual(['d', '0', '0', '0', '0']);
    }, PATIENCE);

    await kubectl(world, 'scale', 'machinedeployment/d', '--replicas=2');
    await kubectl(world, 'wait', '--for=jsonpath={.status.replicas}=2', 'mcd/d', '--timeout=45s');
    const waited = await kubectl(world, 'wait', '--for=condition=Available', 'mcd/d', '--timeout=45s');
    const explained = await kubectl(world, 'explain', 'mcd.spec.strategy.inPlaceUpdate');

    expect(waited).toBe(`${POOL} condition met\n`);
    await eventually(() => expect(world.running()).toHaveLength(2), PATIENCE);
    expect(explained).toContain('orchestrationType');
  });
});
