import { describe, expect, test } from '@jest/globals';

import { FORCE_DELETION_LABEL, MACHINE_FINALIZER, NODE_LABEL } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../pkg/apis/wire.ts';
import { mergePatch } from '../../pkg/kube/client/patch.ts';
import { machineClasses, machines, nodes } from '../../pkg/kube/client/resource.ts';
import { forCreation, machineClass } from '../builders.ts';
import { eventually } from '../expect/eventually.ts';
import { MachineWorld } from './machine-world.ts';

/*
 * Two managers with Machines of two namespaces, whose Nodes are in one cluster and whose VMs are at one provider: a Machine may have the name
 * of a Machine of the other namespace, and Nodes show that name only.
 */
const PATIENCE = { timeoutMs: 120_000 };
const CONTROLLERS = 'machine,machine-class,secret,safety.orphan-vms,safety.unmanaged-nodes';
const MUTATIONS = new Set(['create', 'update', 'patch', 'delete']);

/** Of the other namespace's Machine. */
interface Copied {
  readonly what: string;
  readonly class: 'class-1' | 'late';
  readonly providerID: boolean;
  readonly label: boolean;
  /** Its deletion waits while the Node is Ready: nobody can tell it from a Machine that was created again for its own VM. */
  readonly waits?: true;
}

function namesakeOf(original: Machine, { class: name, providerID, label }: Copied) {
  return (m: Machine): void => {
    m.metadata.name = original.metadata.name;
    m.spec = { class: { kind: 'MachineClass', name } };
    if (providerID) m.spec.providerID = original.spec.providerID ?? '';
    if (label) m.metadata.labels = { [NODE_LABEL]: original.metadata.name };
  };
}

async function provideClass({ user, namespace }: MachineWorld, name: string): Promise<void> {
  const made = machineClass((c) => {
    Object.assign(c.metadata, { namespace, name, finalizers: [MACHINE_FINALIZER] });
    c.providerSpec = { zone: namespace };
    c.secretRef = { name: 'secret-1', namespace };
  });
  await user.writer.create('create', machineClasses, forCreation(made));
}

/** What a manager has done to Nodes, and to what belongs to them. */
function changesOf({ session }: MachineWorld): string[] {
  return session.requests
    .filter(({ verb, resource }) => MUTATIONS.has(verb) && /^(nodes|pods|volumeattachments)/.test(resource))
    .map(({ verb, resource, code }) => `${verb} ${resource} ${code}`);
}

/** Whether a Machine is gone, or its deletion waits for its class. */
async function isStuck(world: MachineWorld, name: string): Promise<boolean> {
  const missing = await world.isMissing(() => world.read(name));
  return missing || (await world.read(name)).status?.lastOperation?.description?.includes('cannot be deleted') === true;
}

/** The only way on for a Machine that waits for its VM to be found. */
async function force(world: MachineWorld, name: string): Promise<void> {
  await eventually(async () => {
    const told = (await world.read(name)).status?.lastOperation?.description;
    return told?.includes(`Node ${name} is Ready, so the VM is assumed to be running`) === true;
  }, PATIENCE);
  const patch = mergePatch(await world.read(name), { metadata: { labels: { [FORCE_DELETION_LABEL]: 'True' } } });
  await world.user.writer.patch('change', machines, { namespace: world.namespace, name }, patch);
}

describe("a Machine with the name of another namespace's healthy Machine", () => {
  test.each<Copied>([
    { what: 'no class', class: 'late', providerID: false, label: false },
    {
      what: 'no class, and the provider ID of the other one',
      class: 'late',
      providerID: true,
      label: false,
      waits: true,
    },
    { what: 'the provider ID of the other one', class: 'class-1', providerID: true, label: false, waits: true },
    { what: 'provider ID and label of the other one', class: 'class-1', providerID: true, label: true, waits: true },
    {
      what: 'no class, and provider ID and label of the other one',
      class: 'late',
      providerID: true,
      label: true,
      waits: true,
    },
  ])('and $what is deleted without its Node', async (copied) => {
    await using other = await MachineWorld.open({ controllers: CONTROLLERS });
    await using mine = await MachineWorld.open({
      connection: other.connection,
      controllers: CONTROLLERS,
      wrap: () => other.cloud.driver,
    });
    const name = await other.create();
    const healthy = await other.settled(name);
    const before = await other.user.reader.get(nodes, { name });
    const joinedMs = Date.parse(before.metadata.creationTimestamp);
    // Timestamps are whole seconds.
    await eventually(() => Date.now() >= joinedMs + 1_000, PATIENCE);

    await mine.create(namesakeOf(healthy, copied));
    // One that names a healthy Node runs.
    await eventually(async () => {
      const { currentStatus, lastOperation } = (await mine.read(name)).status ?? {};
      return copied.label ? currentStatus?.phase === 'Running' : lastOperation?.state === 'Failed';
    }, PATIENCE);
    await mine.delete(name);
    await eventually(() => isStuck(mine, name), PATIENCE);
    if (copied.class === 'late') await provideClass(mine, 'late');
    if (copied.waits) await force(mine, name);
    await mine.gone(name);
    // What the end of the one has woken comes before what the end of the next wakes.
    const last = await mine.create((m) => void (m.spec.class = { kind: 'MachineClass', name: 'none' }));
    await mine.delete(last);
    await mine.gone(last);

    expect(changesOf(mine)).toEqual([]);
    const after: Node = await other.user.reader.get(nodes, { name });
    expect([after.metadata.uid, after.spec?.unschedulable ?? false]).toEqual([before.metadata.uid, false]);
    const kept = await other.read(name);
    expect(kept.metadata).toMatchObject({ uid: healthy.metadata.uid });
    expect(kept.metadata.deletionTimestamp).toBeUndefined();
    expect(kept.status?.currentStatus?.phase).toBe('Running');
    expect(other.cloud.cloud.all()).toHaveLength(1);
  });
});
