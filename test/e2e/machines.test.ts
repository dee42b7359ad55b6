import { describe, expect, test } from '@jest/globals';

import { eventually } from '../expect/eventually.ts';
import { running } from './fleet.ts';
import { budget, eventsWith, judged, pod, podsOf, replaceWebPods, says } from './guarded-pods.ts';
import { History } from './history.ts';
import { machineLeftovers } from './leftovers.ts';
import { machine, machineClass, machineDeployment, NAMESPACE, userDataSecret } from './manifests.ts';
import { onOneInstallation } from './scenario.ts';
import type { Installation } from './installation.ts';

const scenario = onOneInstallation();

const PREFIX = 'node.machine.sapcloud.io/';
/** Other tests share the host. */
const READY = '--timeout=90s';
const DELETED = '--timeout=90s';
/** A refused eviction is repeated after 20 s. */
const DRAINED = '--timeout=120s';
const LATER = { timeoutMs: 120_000, intervalMs: 200 };
/** Holds a pod until somebody takes it away. */
const HOLD = 'example.org/held';
const IN_PLACE_REASON = '{.status.conditions[?(@.type=="InPlaceUpdate")].reason}';

describe('a machine that is made by hand', () => {
  test(
    'runs with a Ready Node, and when it is deleted nothing of it is left',
    scenario(async (installation) => {
      const { kubectl } = installation;
      await using history = await History.begin(installation.admin);

      await installation.apply(machine('by-hand'));
      await running(installation, ['by-hand']);

      const made = JSON.parse(await kubectl('get', 'machine', 'by-hand', '-o', 'json')) as Record<string, unknown>;
      const [vm] = installation.vms.list();
      expect(made).toMatchObject({
        metadata: { labels: { node: 'by-hand' } },
        spec: { providerID: vm?.providerID },
        status: {
          currentStatus: { phase: 'Running' },
          lastOperation: { type: 'Create', state: 'Successful' },
          machineConditions: expect.arrayContaining([
            expect.objectContaining({ type: 'VMCreated', status: 'True' }),
            expect.objectContaining({ type: 'NodeJoined', status: 'True' }),
            expect.objectContaining({ type: 'Healthy', status: 'True' }),
          ]),
        },
      });
      expect(await machineLeftovers(installation)).toEqual([
        'Machine by-hand',
        'Node by-hand',
        `VM ${vm?.providerID} of by-hand`,
        `kubelet ${vm?.process?.pid}`,
      ]);

      await kubectl('delete', 'machine', 'by-hand', DELETED);

      expect(await machineLeftovers(installation)).toEqual([]);
      await history.caughtUp();
      expect(history.phasesOf('by-hand')).toEqual(['', 'Pending', 'Running', 'Terminating', 'Gone']);
      const told = ['VMCreated', 'NodeJoined', 'Drained', 'VMDeleted'];
      await eventually(async () => expect(await reasons(installation, 'by-hand')).toEqual(told));
    }),
  );

  test(
    'lets its pods end in their own time before its VM goes',
    scenario(async (installation) => {
      const { kubectl } = installation;
      await installation.apply(machine('busy'));
      await running(installation, ['busy']);
      await installation.apply(slowPod('slow', 'busy', [HOLD]));
      await kubectl('wait', 'pod/slow', '--for=condition=Ready', READY);

      await kubectl('delete', 'machine', 'busy', '--wait=false');
      await eventually(async () => expect(await kubectl('describe', 'machine', 'busy')).toMatch(/Reason: +Draining/));
      const whileDraining = await machineLeftovers(installation);
      const node = await kubectl('get', 'node', 'busy', '-o', 'jsonpath={.spec.unschedulable}');
      await kubectl('patch', 'pod', 'slow', '--type=json', '-p', '[{"op":"remove","path":"/metadata/finalizers"}]');
      await kubectl('wait', 'machine/busy', '--for=delete', DELETED);

      expect(whileDraining).toEqual(expect.arrayContaining(['Node busy', expect.stringMatching(/^VM .* of busy$/)]));
      expect(node).toBe('true');
      expect(await kubectl('get', 'pods', '-o', 'name')).toBe('');
      await eventually(async () => expect(await reasons(installation, 'busy')).toContain('Drained'));
    }),
  );
});

describe('machines that are kept', () => {
  test(
    'one is updated in place with its pods moved away; one that died stays until its time is over, then it is replaced',
    scenario(async (installation) => {
      const { kubectl, vms } = installation;
      const pool = machineDeployment('kept', 1);
      const spec = pool['spec'] as { template: { spec: Record<string, unknown> } };
      Object.assign(spec.template.spec, { healthTimeout: '1s', machinePreserveTimeout: '10s' });
      await installation.apply({ ...pool, spec: { ...spec, autoPreserveFailedMachineMax: 1 } }, machine('updated'));
      const all = await running(installation, 2);
      const dead = all.map(({ metadata }) => metadata.name).find((name) => name !== 'updated') ?? '';
      await using history = await History.begin(installation.admin);
      vms.kill(dead);

      await installation.apply(slowPod('slow', 'updated'));
      await kubectl('wait', 'pod/slow', '--for=condition=Ready', READY);
      await kubectl(
        'label',
        'node',
        'updated',
        `${PREFIX}candidate-for-update=true`,
        `${PREFIX}selected-for-update=true`,
      );
      await kubectl('wait', 'node/updated', `--for=jsonpath=${IN_PLACE_REASON}=ReadyForUpdate`, '--timeout=60s');
      expect(await kubectl('get', 'pods', '-o', 'name')).toBe('');
      await kubectl('label', 'node', 'updated', `${PREFIX}update-result=successful`);
      await kubectl('wait', 'node/updated', `--for=jsonpath=${IN_PLACE_REASON}=UpdateSuccessful`, '--timeout=60s');

      await eventually(() => expect(history.phasesOf(dead)).toContain('Gone'), { timeoutMs: 90_000 });
      await running(installation, 2);
      await history.caughtUp();

      const told = history.moments.map((moment) => moment.get(dead)?.status?.machineConditions ?? []).flat();
      expect(told).toContainEqual(expect.objectContaining({ type: 'Healthy', reason: 'PreservedFailed' }));
      expect(history.phasesOf(dead)).toEqual(['Running', 'Unknown', 'Failed', 'Terminating', 'Gone']);
      expect(history.phasesOf('updated')).toEqual(['Running', 'InPlaceUpdating', 'InPlaceUpdateSuccessful', 'Running']);
      const kept = ['Preserved', 'Drained', 'VMDeleted'];
      await eventually(async () => expect(await reasons(installation, dead)).toEqual(expect.arrayContaining(kept)));
    }),
  );
});

describe('machines whose pods are guarded by budgets', () => {
  test(
    'one that allows an eviction at a time is obeyed; one that allows none is named until the deletion is forced',
    scenario(async (installation) => {
      const { kubectl } = installation;
      await installation.apply(machine('web'), machine('solo'), machine('spare'));
      await running(installation, ['solo', 'spare', 'web']);
      await installation.apply(pod('web-0', 'web', 'web'), pod('web-1', 'web', 'web'), pod('solo-0', 'solo', 'solo'));
      await kubectl('wait', 'pods', '--all', '--for=condition=Ready', '--timeout=60s');
      await installation.apply(budget('web', 1), budget('solo', 1));
      await judged(installation);
      const stop = new AbortController();
      using _stop = { [Symbol.dispose]: () => stop.abort() };

      await kubectl('delete', 'machines', 'web', 'solo', '--wait=false');
      // A pod that came in the other's place at once would leave nothing to wait for.
      await says(installation, 'web', 'PodDisruptionBudget web currently allows no eviction');
      const replaced = replaceWebPods(installation, stop.signal);
      await says(installation, 'solo', '/solo is misconfigured and requires zero voluntary evictions');
      const guarded = await podsOf(installation, 'solo');
      await kubectl('label', 'machine', 'solo', 'force-deletion=true');
      await kubectl('wait', 'machine/solo', '--for=delete', DRAINED);
      await kubectl('wait', 'machine/web', '--for=delete', DRAINED);
      await eventually(async () => {
        const nodes = (await podsOf(installation, 'web')).map(({ spec }) => spec?.nodeName);
        expect(nodes).toEqual(['spare', 'spare']);
      }, LATER);
      stop.abort();
      const fewest = await replaced;

      expect(fewest).toBe(1);
      expect(guarded.map(({ metadata }) => metadata.deletionTimestamp)).toEqual([undefined]);
      const web = await eventsWith(installation, 'web', ['DrainBlocked', 'Drained', 'VMDeleted']);
      expect(web.map(({ reason }) => reason)).not.toContain('DrainForced');
      expect(web.find(({ reason }) => reason === 'DrainBlocked')?.message).toMatch(
        /^Waiting for [12] pods?: machinist\/web-[01] \(PodDisruptionBudget web currently allows no eviction\)/,
      );
      await eventsWith(installation, 'solo', ['DrainBlocked', 'DrainForced', 'Drained', 'VMDeleted']);
      await kubectl('delete', 'poddisruptionbudgets', '--all');
      await kubectl('delete', 'pods', '--all', DRAINED);
    }),
  );
});

/** A mistake in what a machine is made from, how it shows, and what mends it. */
interface Mistake {
  readonly name: string;
  readonly breakIt: (installation: Installation) => Promise<unknown>;
  readonly mendIt: (installation: Installation) => Promise<unknown>;
  readonly phase: string;
  readonly reason: string;
  readonly event: string;
  readonly says: string;
}

const MISTAKES: readonly Mistake[] = [
  {
    name: 'a provider spec that the provider refuses',
    breakIt: (i) => i.apply(machineClass('special', { providerSpec: { size: 42 } })),
    mendIt: (i) => i.kubectl('patch', 'machineclass', 'special', '--type=json', '-p', replace('/providerSpec', {})),
    phase: 'CrashLoopBackOff',
    reason: 'InvalidArgument',
    event: 'CreateFailed',
    says: 'providerSpec.size',
  },
  {
    name: 'a class that does not exist',
    breakIt: async () => undefined,
    mendIt: (i) => i.apply(machineClass('special')),
    phase: 'CrashLoopBackOff',
    reason: 'CannotCreate',
    event: 'InvalidClass',
    says: `MachineClass ${NAMESPACE}/special not found: create it.`,
  },
  {
    name: 'a class of a provider without driver',
    breakIt: (i) => i.apply(machineClass('special', { provider: 'loca' })),
    mendIt: (i) => i.apply(machineClass('special')),
    phase: 'CrashLoopBackOff',
    reason: 'CannotCreate',
    event: 'InvalidClass',
    says: 'No driver is configured for provider "loca"',
  },
  {
    name: 'a Secret that does not exist',
    breakIt: (i) => i.apply(machineClass('special', { secretRef: { name: 'missing', namespace: NAMESPACE } })),
    mendIt: (i) => i.apply(userDataSecret(i.userData, 'missing')),
    phase: 'CrashLoopBackOff',
    reason: 'CannotCreate',
    event: 'InvalidClass',
    says: `Secret ${NAMESPACE}/missing of MachineClass ${NAMESPACE}/special does not exist: create it with key userData.`,
  },
  {
    name: 'user data that no machine can start with',
    breakIt: (i) => i.apply(machineClass('special'), userDataSecret('#!/bin/sh\n')),
    mendIt: (i) => i.apply(userDataSecret(i.userData)),
    phase: 'CrashLoopBackOff',
    reason: 'InvalidArgument',
    event: 'CreateFailed',
    says: 'userData',
  },
];

describe('a mistake shows in phase, status, conditions and events, and is healed by mending it alone:', () => {
  test.each(MISTAKES)('$name', async (mistake) => {
    await scenario(async (installation) => {
      const { kubectl } = installation;
      await mistake.breakIt(installation);

      await installation.apply(machine('hopeful', 'special'));

      await eventually(async () => {
        const [told] = await installation.machines();
        expect(told?.status).toMatchObject({
          lastOperation: { type: 'Create', state: 'Failed', description: expect.stringContaining(mistake.says) },
          machineConditions: expect.arrayContaining([
            expect.objectContaining({ type: 'VMCreated', status: 'False', reason: mistake.reason }),
          ]),
        });
        expect(told?.status?.currentStatus?.phase ?? '').toBe(mistake.phase);
        const described = await kubectl('describe', 'machine', 'hopeful');
        expect(described).toMatch(new RegExp(`Warning +${mistake.event} .*machine-controller`));
        expect(described).toContain(mistake.says);
      });
      expect(installation.vms.list()).toEqual([]);

      await mistake.mendIt(installation);

      await running(installation, ['hopeful']);
    })();
  });
});

function replace(path: string, value: unknown): string {
  return JSON.stringify([{ op: 'replace', path, value }]);
}

/** Reasons of the Events on a Machine, in the order in which they were first told. */
async function reasons(installation: Installation, name: string): Promise<readonly string[]> {
  const selector = `--field-selector=involvedObject.kind=Machine,involvedObject.name=${name}`;
  const sorted = '--sort-by={.firstTimestamp}';
  const text = await installation.kubectl('get', 'events', selector, sorted, '-o', 'jsonpath={.items[*].reason}');
  return text.split(' ');
}

/** A pod on this Node that takes some seconds to end, and for as long as it is held. */
function slowPod(name: string, nodeName: string, finalizers: readonly string[] = []) {
  const lifecycle = { preStop: { sleep: { seconds: 4 } } };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: NAMESPACE, finalizers },
    spec: {
      nodeName,
      terminationGracePeriodSeconds: 20,
      containers: [{ name: 'main', image: 'example.org/main', lifecycle }],
    },
  };
}
