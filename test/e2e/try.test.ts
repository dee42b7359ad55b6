import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';

import type { Api } from '../../hack/control-plane/api.ts';
import { applyManifests, readManifests } from '../../hack/control-plane/apply.ts';
import { type ControlPlane, startControlPlane } from '../../hack/control-plane/control-plane.ts';
import { CRD_FOLDERS } from '../env/crds.ts';
import { eventually } from '../expect/eventually.ts';
import { Terminal } from '../terminal/terminal.ts';
import { sampledDescribe, sampledTest } from '../expect/sampled.ts';
import { BUNDLE, type Ending, fileOf, Program, SOURCES } from './program.ts';

/** What else it does beside the first test, whose life is that of each. */
const testInTurn = sampledTest(2);
const describeInTurn = sampledDescribe(2);

const UP_MS = 180_000;
const PATIENCE = { timeoutMs: 120_000 };
const RUNNING = 'All machines are Running.';

const CLASSES = '/apis/machine.sapcloud.io/v1alpha1/namespaces/default/machineclasses';
const somebodysClass = {
  apiVersion: 'machine.sapcloud.io/v1alpha1',
  kind: 'MachineClass',
  metadata: { name: 'somebodys', namespace: 'default' },
  provider: 'sim',
  providerSpec: {},
};

jest.setTimeout(240_000);

/** A cluster that has never heard of Machinist, as one of kind or minikube. */
describe('machinist try', () => {
  let plane: ControlPlane;
  let api: Api;
  let state: string;
  beforeAll(async () => {
    plane = await startControlPlane({ programs: ['kubectl'] });
    api = plane.connection.api();
    // What kube-controller-manager makes in each namespace.
    const made = ['default', 'kube-node-lease', 'kube-public', 'kube-system'].map(
      (name) => `ConfigMap ${name}/kube-root-ca.crt`,
    );
    const accounts = ['default', 'kube-node-lease', 'kube-public'].map((name) => `ServiceAccount ${name}/default`);
    await eventually(async () => {
      const now = await everything(api);
      return [...made, ...accounts].every((one) => now.includes(one));
    }, PATIENCE);
  });
  afterAll(async () => {
    await api.close();
    await plane.stop();
  });
  beforeEach(() => {
    state = mkdtempSync(join(tmpdir(), 'machinist-try-state-'));
  });
  afterEach(() => rmSync(state, { recursive: true }));

  const env = (): Record<string, string> => ({ KUBECONFIG: plane.kubeconfig, XDG_STATE_HOME: state });
  const start = (...args: readonly string[]): Program =>
    new Program('machinist', ['try', ...args], { env: env(), installation: BUNDLE });
  const run = async (...args: readonly string[]): Promise<Ending> => await start(...args).ended();
  const kubectl = async (...args: readonly string[]): Promise<string> => {
    const program = plane.connection.programs.kubectl?.path ?? 'kubectl';
    return (await promisify(execFile)(program, ['--kubeconfig', plane.kubeconfig, ...args])).stdout;
  };
  const phases = async (): Promise<readonly string[]> =>
    (await kubectl('-n', 'machinist-try', 'get', 'mc', '-o', 'jsonpath={.items[*].status.currentStatus.phase}'))
      .split(' ')
      .filter((phase) => phase !== '');

  test('runs machines in a cluster, and an undo leaves the cluster as it was', async () => {
    // As of a cluster that kind has made with that name, and of a pod of somebody's.
    const strangers = [
      ['/api/v1/nodes', { metadata: { name: 'machinist-try-worker' } }],
      [
        '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases',
        { metadata: { name: 'machinist-try-worker' } },
      ],
      ['/api/v1/namespaces/default/events', eventAbout('Node', 'machinist-try-worker')],
      ['/api/v1/namespaces/default/events', eventAbout('Pod', 'machinist-try-web')],
    ] as const;
    for (const [path, object] of strangers) await api.send('POST', path, object);
    // That of the node lifecycle controller, which notices the Node.
    const isNoticed = (one: string): boolean => /^Event default\/machinist-try-worker\.\w{2,}/.test(one);
    await eventually(async () => expect((await everything(api)).some(isNoticed)).toBe(true), PATIENCE);
    const before = await everything(api);
    await using program = new Program('machinist', ['try', '--yes'], { env: env(), installation: SOURCES });
    await program.says(RUNNING, UP_MS);
    const nodes = await kubectl('get', 'nodes', '-o', 'jsonpath={.items[*].spec.taints[*].key}');
    await kubectl('-n', 'machinist-try', 'scale', 'mcd', 'machinist-try', '--replicas=3');
    await eventually(async () => expect(await phases()).toEqual(['Running', 'Running', 'Running']), PATIENCE);
    program.kill('SIGINT');
    const { code, stdout, stderr } = await program.ended();
    const undone = await run('--undo', '--yes');

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^Context: {2}\S+\nServer: {3}https:\/\/127\.0\.0\.1:\d+\n/);
    expect(stdout).toContain('- CustomResourceDefinitions machines.machine.sapcloud.io');
    expect(nodes.split(' ')).toContain('machinist-try');
    expect(undone).toMatchObject({ code: 0, stderr: '' });
    expect(undone.stdout).toContain('Nothing of machinist try is left in the cluster.');
    await eventually(async () => expect(await everything(api)).toEqual(before), PATIENCE);
    expect(readdirSync(join(state, 'machinist/try'))).toEqual([]);
    for (const [path, { metadata }] of strangers) await api.send('DELETE', `${path}/${metadata.name}`);
    // The end of the Node is noticed seconds later, and must not come into the next test.
    await eventually(async () => expect((await everything(api)).filter(isNoticed)).toHaveLength(2), PATIENCE);
  });

  testInTurn(
    'leaves alone what somebody creates while it asks, and removes the machines of a namespace that somebody has deleted already',
    async () => {
      const ask = (...args: readonly string[]): Promise<Terminal> => {
        const command = [process.execPath, fileOf('machinist', BUNDLE), 'try', ...args];
        return Terminal.start(command, { columns: 120, rows: 40 }, { ...BUNDLE.env, ...env() });
      };
      const before = await everything(api);
      const object = { metadata: { name: 'machinist-try' } };
      await using first = await ask();
      await first.shows(/Continue\? \[y\/N\]/);
      await api.send('POST', '/api/v1/namespaces', object);
      first.type('y\r');
      const refused = await first.ended();
      const inNamespace = (await everything(api)).filter((one) => / machinist-try\//.test(one));
      await api.send('DELETE', '/api/v1/namespaces/machinist-try');
      await eventually(async () => expect(await everything(api)).not.toContain('Namespace /machinist-try'), PATIENCE);

      await using program = start('--yes');
      await program.says(RUNNING, UP_MS);
      program.kill('SIGINT');
      await program.ended();
      await kubectl('delete', 'namespace', 'machinist-try', '--wait=false');
      await using second = await ask('--undo');
      await second.shows(/Continue\? \[y\/N\]/);
      await api.send('POST', CLASSES, somebodysClass);
      second.type('y\r');
      const undone = await second.ended();
      const left = await everything(api);
      await api.send('DELETE', `${CLASSES}/somebodys`);
      const again = await run('--undo', '--yes');

      expect(refused).toBe(1);
      expect(first.lines.join('\n')).toContain('namespace machinist-try exists, and machinist try has not created it');
      expect(inNamespace.filter((one) => !/kube-root-ca.crt|ServiceAccount/.test(one))).toEqual([]);
      expect(undone).toBe(0);
      expect(second.lines.join('\n')).toContain('MachineClass default/somebodys exists');
      expect(second.lines.join('\n')).toContain('Removed namespace machinist-try.');
      expect(left).toContain('MachineClass default/somebodys');
      expect(left).not.toContain('Namespace /machinist-try');
      expect(again).toMatchObject({ code: 0, stderr: '' });
      await eventually(async () => expect(await everything(api)).toEqual(before), PATIENCE);
    },
  );

  testInTurn(
    'refuses to run twice, continues with the same machines, and is undone although it was killed, by whoever tries last',
    async () => {
      const before = await everything(api);
      const machines = (): Promise<string> => kubectl('-n', 'machinist-try', 'get', 'mc', '-o', 'name');
      await using first = start('--yes');
      await first.says(RUNNING, UP_MS);
      const ofFirst = await machines();
      const second = await run('--yes');
      first.kill('SIGTERM');
      await first.ended();
      await using resumed = start('--yes');
      await resumed.says(RUNNING, UP_MS);
      const ofResumed = await machines();

      resumed.kill('SIGKILL');
      await resumed.ended();
      await using stopped = start('--undo', '--yes');
      await stopped.says('Deletion was requested', UP_MS);
      stopped.kill('SIGINT');
      const { code, stderr } = await stopped.ended();
      rmSync(join(state, 'machinist'), { recursive: true }); // as on another host
      const undone = await run('--undo', '--yes');
      const again = await run('--undo', '--yes');

      expect(second).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(
          /^error: machinist try already runs for this cluster, as process \d+; stop it with Ctrl-C first\n$/,
        ),
      });
      expect(ofResumed).toBe(ofFirst);
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: 'error: stopped by SIGINT; machinist try --undo removes what is there\n',
      });
      expect(undone).toMatchObject({ code: 0, stderr: '' });
      expect(again).toMatchObject({ code: 0, stdout: 'There is nothing to remove.\n' });
      await eventually(async () => expect(await everything(api)).toEqual(before), PATIENCE);
    },
  );

  testInTurn('does nothing without an answer', async () => {
    const before = await everything(api);

    const { code, stderr } = await run();

    expect({ code, stderr }).toEqual({ code: 1, stderr: 'error: there is no terminal to ask on; use --yes\n' });
    expect(await everything(api)).toEqual(before);
  });

  describeInTurn('in a cluster with the definitions already', () => {
    beforeAll(() => applyManifests(api, readManifests(CRD_FOLDERS.original)));
    test('leaves them there, removes Nodes that are left without their machines, and says only what it has done', async () => {
      const before = await everything(api);
      await using program = start('--yes');
      await program.says(RUNNING, UP_MS);
      program.kill('SIGINT');
      await program.ended();
      const nothing = ['--type=merge', '-p', '{"metadata":{"finalizers":null}}'];
      const kinds = ['mcd', 'mcs', 'mc', 'machineclasses', 'secrets'].join(',');
      const names = (await kubectl('-n', 'machinist-try', 'get', kinds, '-o', 'name')).split('\n').filter(Boolean);
      for (const name of names) await kubectl('-n', 'machinist-try', 'patch', name, ...nothing);
      await kubectl('delete', 'namespace', 'machinist-try');

      const undone = await run('--undo', '--yes');

      expect(undone).toMatchObject({ code: 0, stderr: '' });
      expect(undone.stdout).toContain('Removed the Nodes.');
      expect(undone.stdout).not.toContain('Removed namespace');
      expect(undone.stdout).toContain(
        'Keeping CustomResourceDefinition machines.machine.sapcloud.io: it existed before.\n',
      );
      await eventually(async () => expect(await everything(api)).toEqual(before), PATIENCE);
    });

    test('refuses to run where somebody has objects of these kinds', async () => {
      await api.send('POST', CLASSES, somebodysClass);

      const { code, stdout, stderr } = await run('--yes');
      await api.send('DELETE', `${CLASSES}/somebodys`);

      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toMatch(
        /^error: the cluster already has MachineClass default\/somebodys, which Machinist or machine-controller-manager may manage; use another cluster\n$/,
      );
    });

    test('refuses a namespace of its name that it has not created', async () => {
      await api.send('POST', '/api/v1/namespaces', { metadata: { name: 'machinist-try' } });

      const runs = [await run('--yes'), await run('--undo', '--yes')];
      await api.send('DELETE', '/api/v1/namespaces/machinist-try');

      expect(runs.map(({ code }) => code)).toEqual([1, 1]);
      expect(runs.map(({ stderr }) => stderr)).toEqual([
        expect.stringContaining('namespace machinist-try exists, and machinist try has not created it'),
        expect.stringContaining('machinist try has not created namespace machinist-try: nothing is removed'),
      ]);
    });
  });
});

function eventAbout(kind: string, name: string) {
  const involvedObject = { kind, name, namespace: kind === 'Pod' ? 'default' : '' };
  return {
    metadata: { name: `${name}.1` },
    involvedObject,
    reason: 'Seen',
    message: 'x',
    type: 'Normal',
  };
}

interface Discovered {
  readonly resources: readonly { readonly name: string; readonly kind: string; readonly verbs: readonly string[] }[];
}
interface Listed {
  readonly items: readonly { readonly metadata: { readonly namespace?: string; readonly name: string } }[];
}

/** Each object of each kind that the server lists, in whatever namespace. */
async function everything(api: Api): Promise<readonly string[]> {
  const { groups } = await api.send<{
    readonly groups: readonly { readonly preferredVersion: { readonly groupVersion: string } }[];
  }>('GET', '/apis');
  const roots = ['/api/v1', ...groups.map(({ preferredVersion }) => `/apis/${preferredVersion.groupVersion}`)];
  const found: string[] = [];
  for (const root of roots) {
    const { resources } = await api.send<Discovered>('GET', root);
    for (const { name, kind, verbs } of resources) {
      // events.k8s.io has the same ones.
      if (!verbs.includes('list') || name.includes('/') || root.includes('/events.k8s.io/')) continue;
      const { items } = await api.send<Listed>('GET', `${root}/${name}`);
      found.push(...items.map(({ metadata }) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`));
    }
  }
  // kube-controller-manager makes those of its parts when they begin to work.
  return found.filter((one) => !one.startsWith('ServiceAccount kube-system/')).toSorted();
}
