import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { deleteMachines, type DeleteCommandOptions } from '../../cmd/machinist/delete/delete.ts';
import type { Api } from '../../hack/control-plane/api.ts';
import {
  DELETION_POLICY_ANNOTATION,
  DELETION_PREPARATION_SINCE_ANNOTATION,
  PREPARE_DELETION_ANNOTATION,
} from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import { preparationShownBy } from '../../pkg/controllers/machine-facts/prepared-deletion.ts';
import { ApiError } from '../../pkg/kube/client/errors.ts';
import { mergePatch } from '../../pkg/kube/client/patch.ts';
import { machines, nodes } from '../../pkg/kube/client/resource.ts';
import { Workload } from '../cloud/workload.ts';
import { connect } from '../env/environment.ts';
import { refuse } from '../env/refusal.ts';
import { eventually } from '../expect/eventually.ts';
import { MachineWorld } from './machine-world.ts';

const PATIENCE = { timeoutMs: 120_000 };
const HOOK = 'pre-drain.hook.machine.sapcloud.io/test';

let api: Api;
let world: MachineWorld;
let workload: Workload;
/** What every version of a Machine said of its preparation, by name, as the server has told it. */
const seen = new Map<string, string[]>();
/** Machines whose deletionTimestamp came while their annotation did not ask for it. */
const wronged: string[] = [];

beforeAll(async () => {
  world = await MachineWorld.open({ connection: connect() });
  api = world.connection.api();
  workload = await Workload.open(api, world.namespace);
  world.session.caches.machines.onChange((old, current) => {
    if (current === undefined) return;
    const { name, deletionTimestamp, annotations } = current.metadata;
    const isNew = deletionTimestamp !== undefined && old?.metadata.deletionTimestamp === undefined;
    const isPlain = annotations?.[DELETION_POLICY_ANNOTATION] !== undefined;
    if (isNew && !isPlain && annotations?.[PREPARE_DELETION_ANNOTATION] !== 'true') wronged.push(name);
    const said = isNew ? 'DELETED' : preparationShownBy(current)?.reason;
    const before = seen.get(name) ?? [];
    if (said !== undefined && before.at(-1) !== said) seen.set(name, [...before, said]);
  });
});

afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await api.close();
});

/** Asks for the deletion of a Machine, or takes that back. */
async function prepare(name: string, value: 'true' | null): Promise<void> {
  await annotate(name, PREPARE_DELETION_ANNOTATION, value);
}

async function annotate(name: string, key: string, value: string | null): Promise<void> {
  const change = { metadata: { annotations: { [key]: value } } };
  const patch = mergePatch(await world.read(name), change as never);
  await world.user.writer.patch('change', machines, { namespace: world.namespace, name }, patch);
}

/** Whatever budgets say. */
async function deleteAtOnce(name: string): Promise<void> {
  await annotate(name, DELETION_POLICY_ANNOTATION, 'unsafe');
  await world.delete(name);
  await world.gone(name);
}

async function isCordoned(name: string): Promise<boolean> {
  return (await world.user.reader.get(nodes, { name })).spec?.unschedulable === true;
}

/** Resolves with the Machine when nothing of a preparation is left. */
async function released(name: string): Promise<Machine> {
  return await eventually(
    async () => {
      const machine = await world.read(name);
      expect(machine.metadata.annotations ?? {}).not.toHaveProperty([DELETION_PREPARATION_SINCE_ANNOTATION]);
      expect(preparationShownBy(machine)).toBeUndefined();
      return machine;
    },
    { ...PATIENCE, describe: `the preparation of ${name} to leave nothing behind` },
  );
}

async function says(name: string, reason: string): Promise<Machine> {
  return await eventually(
    async () => {
      const machine = await world.read(name);
      expect(preparationShownBy(machine)?.reason).toBe(reason);
      return machine;
    },
    { ...PATIENCE, describe: `${name} to say ${reason}` },
  );
}

describe('a deletion that is prepared', () => {
  // promise: deletions-aborted/started-completed-told-machine
  // promise: openstack/deletion/prepared-started-completed-deleted
  test('is told as started and completed before the Machine is deleted, and only then', async () => {
    const name = await world.create();
    await world.settled(name);
    await workload.pod(name);
    await eventually(async () => (await workload.pods()).every(({ status }) => status?.phase === 'Running'), PATIENCE);

    await prepare(name, 'true');
    await world.gone(name);

    expect(seen.get(name)?.slice(0, 3)).toEqual(['started', 'completed', 'DELETED']);
    expect(world.cloud.cloud.all()).toEqual([]);
  });

  // promise: deletions-aborted/abort-node-drained-schedulable
  // promise: openstack/deletion/aborted-drains-schedulable-running
  test('is aborted while a budget keeps its pods: the machine goes on as before', async () => {
    const name = await world.create();
    const { spec } = await world.settled(name);
    await workload.pod(name);
    await eventually(async () => (await workload.pods()).every(({ status }) => status?.phase === 'Running'), PATIENCE);
    await workload.forbidEvictions(9);

    await prepare(name, 'true');
    await says(name, 'blocked');
    await eventually(() => isCordoned(name), PATIENCE);
    await prepare(name, null);
    const machine = await released(name);

    await schedulable(name);
    expect(machine.status?.currentStatus?.phase).toBe('Running');
    expect(machine.spec.providerID).toBe(spec.providerID);
    expect(await workload.pods()).toHaveLength(1);
    expect(seen.get(name)).toEqual(['started', 'blocked', 'aborting']);
    await deleteAtOnce(name);
  });

  // promise: deletions-aborted/abort-api-server-refuses
  // promise: openstack/deletion/uncordon-refused-told-failed
  test('says that its abort has failed while the API server refuses to uncordon the Node', async () => {
    const name = await world.create();
    await world.settled(name);
    await workload.pod(name);
    await prepare(name, 'true');
    await eventually(() => isCordoned(name), PATIENCE);
    const refusal = await refuse({
      resource: 'nodes',
      operations: ['UPDATE'],
      concerns: `object.metadata.name == '${name}'`,
      unless: 'has(object.spec.unschedulable) && object.spec.unschedulable',
      message: 'stays cordoned, says a test',
      probe: { method: 'PATCH', path: `/api/v1/nodes/${name}`, body: { spec: { unschedulable: null } } },
    });

    await prepare(name, null);
    const failed = await says(name, 'failed');
    await refusal[Symbol.asyncDispose]();
    await released(name);

    expect(preparationShownBy(failed)?.message).toContain('stays cordoned, says a test');
    await schedulable(name);
    await deleteAtOnce(name);
  });

  test('is asked for and taken back on the command line, which shows how it goes on', async () => {
    const name = await world.create((m) => {
      m.metadata.annotations = { [HOOK]: '' };
    });
    await world.settled(name);

    const prepared = typed(name, { prepare: true, wait: true });
    await says(name, 'started');
    expect(await typed(name, { abort: true, wait: true })).toEqual({
      code: 0,
      said: expect.arrayContaining([
        `machine.machine.sapcloud.io/${name} deletion aborted`,
        `machine "${name}" is kept`,
      ]),
      complained: [],
    });
    expect(await prepared).toMatchObject({
      code: 1,
      said: expect.arrayContaining([`Waiting for machine "${name}": Waiting for hooks: ${HOOK}.`]),
      complained: [`error: the deletion of machine "${name}" was aborted`],
    });
    expect(await typed(name, { abort: true })).toMatchObject({
      complained: [`error: the deletion of machine "${name}" is not being prepared`],
    });

    expect(await typed(name, { policy: 'unsafe', wait: true })).toMatchObject({
      code: 0,
      said: expect.arrayContaining([`machine "${name}" has been deleted`]),
    });
    expect(await typed(name, { prepare: true })).toMatchObject({ code: 1 });
  });

  // 200 of them: those without a Node are quick, and race for the DELETE alone.
  // promise: deletions-aborted/abort-wins-loses-whole
  // promise: openstack/deletion/200-aborts-random-times
  test.each([
    { what: 'with a Node', runs: 10, lanes: 6 },
    { what: 'without a VM', runs: 20, lanes: 7 },
  ])('is aborted as a whole or not at all, whenever that comes: $runs times, in $lanes lanes, $what', async (races) => {
    const { what, runs, lanes } = races;
    const hasNode = what === 'with a Node';
    if (!hasNode) world.cloud.faults.set([{ method: 'CreateMachine', effect: 'fail', code: 'ResourceExhausted' }]);
    const clock = new SystemClock();
    const signal = new AbortController().signal;
    const outcomes = { deleted: 0, aborted: 0 };
    const lane = async (): Promise<void> => {
      let name: string | undefined;
      // Ends where either may win.
      let delayMs = 40;
      for (let run = 0; run < runs; run++) {
        if (name === undefined) {
          name = await world.create();
          if (hasNode) await world.settled(name);
        }
        await prepare(name, 'true');
        await clock.sleep(delayMs * Math.random() * 2, signal);
        const isGone = await takeBack(name);
        outcomes[isGone ? 'deleted' : 'aborted'] += 1;
        delayMs *= isGone ? 0.7 : 1.4;
        if (isGone) name = undefined;
        else if (hasNode) await schedulable(name);
      }
    };

    await Promise.all(Array.from({ length: lanes }, lane));

    expect(wronged).toEqual([]);
    expect(outcomes.deleted + outcomes.aborted).toBe(lanes * runs);
  });
});

/** What a drain has sent may cordon the Node after its abort, for a moment. */
async function schedulable(name: string): Promise<void> {
  await eventually(async () => !(await isCordoned(name)), { ...PATIENCE, describe: `Node ${name} to be uncordoned` });
}

/** What a person types, as `machinist delete machine`. */
async function typed(
  name: string,
  options: Partial<DeleteCommandOptions>,
): Promise<{ code: number; said: string[]; complained: string[] }> {
  const said: string[] = [];
  const complained: string[] = [];
  const common = { kubeconfig: world.connection.kubeconfig, namespace: world.namespace, wait: false, timeout: 60_000 };
  const terminal = { out: (line: string) => said.push(line), err: (line: string) => complained.push(line), env: {} };
  return { code: await deleteMachines(['machine', name], { ...common, ...options }, terminal), said, complained };
}

/** Whether the Machine is gone, or going, although its deletion was taken back. */
async function takeBack(name: string): Promise<boolean> {
  try {
    await prepare(name, null);
  } catch (err) {
    if (!ApiError.is(err, 'NotFound', 'Invalid')) throw err;
    await world.gone(name);
    return true;
  }
  let isGone = false;
  await eventually(
    async () => {
      isGone = await world.isMissing(() => world.read(name));
      if (isGone) return;
      const machine = await world.read(name);
      const { annotations, deletionTimestamp } = machine.metadata;
      expect(deletionTimestamp).toBeUndefined();
      expect(annotations ?? {}).not.toHaveProperty([DELETION_PREPARATION_SINCE_ANNOTATION]);
    },
    { ...PATIENCE, describe: `${name} to go, or to stay` },
  );
  return isGone;
}
