import { describe, expect, test } from '@jest/globals';

import { machine, node } from '../../../../test/builders.ts';
import type { Node } from '../../../apis/wire.ts';
import type { ListedMachine } from '../../../driver/driver.ts';
import { DriverError } from '../../../driver/error.ts';
import type { DeletedMachine } from '../deleted-machines.ts';
import { noteOfForcedRemoval } from '../../vms/forced-removals.ts';
import { FAILURE, GRACE_MS, OrphanWorld, VM } from '../../../../test/fakes/orphan-world.ts';

describe('the Node of a Machine that was let go by force', () => {
  const noted = (world: OrphanWorld): DeletedMachine[] => {
    const late: DeletedMachine[] = [];
    world.gone.onLate((one) => void late.push(one));
    const former = machine((m) => {
      m.metadata.labels = { node: 'n-1' };
      m.spec.providerID = VM.providerID;
    });
    Object.assign(world.oneClass.metadata, { annotations: noteOfForcedRemoval(former) });
    return late;
  };

  const nodeOf = (providerID: string, ready: 'True' | 'Unknown'): Node =>
    node((n) => {
      n.metadata.name = 'n-1';
      n.spec = { providerID };
      n.status.conditions = [{ type: 'Ready', status: ready }];
    });

  test.each<{ what: string; shown: (world: OrphanWorld) => void }>([
    { what: 'it is there still, not ready', shown: ({ nodes }) => nodes.put(nodeOf(VM.providerID, 'Unknown')) },
    { what: 'a Node of its name shows another VM', shown: ({ nodes }) => nodes.put(nodeOf('sim:///m-2', 'True')) },
    {
      what: 'a Node of its name is that of another Machine',
      shown({ nodes, owners }) {
        nodes.put(nodeOf('', 'True'));
        owners.put(machine((m) => void (m.metadata.labels = { node: 'n-1' })));
      },
    },
  ])('goes although $what', async ({ shown }) => {
    const world = new OrphanWorld();
    const late = noted(world);
    world.provider.listed = [];
    shown(world);
    await world.look();
    world.clock.advance(GRACE_MS);
    await world.look();

    expect(late).toHaveLength(1);
  });

  test('stays when what the first of two looks showed cannot be trusted any more', async () => {
    const world = new OrphanWorld();
    const late = noted(world);
    world.namesakes = ['another'];
    world.provider.listed = [];
    await world.look();
    world.clock.advance(GRACE_MS);
    world.trustedSinceMs = world.clock.monotonicMs() - 1;
    await world.look();

    expect(late).toEqual([]);
  });

  test('goes when two looks in a row do not show its VM, whoever deleted that', async () => {
    const world = new OrphanWorld();
    const late = noted(world);
    world.provider.listed = [];
    await world.look();
    expect(late).toEqual([]);

    world.clock.advance(GRACE_MS);
    await world.look();
    await world.look();

    expect(late).toEqual([{ name: 'm-1', nodeName: 'n-1', providerID: VM.providerID }]);
  });

  test('stays when a look between two that do not show its VM did, and did not come to its end', async () => {
    const world = new OrphanWorld();
    const late = noted(world);
    for (const listed of [[], [VM], []]) {
      world.provider.listed = listed;
      world.examineFailure = listed.length > 0 ? new Error('took too long') : undefined;
      await world.look();
      world.clock.advance(GRACE_MS);
    }

    expect(late).toEqual([]);
  });

  // promise: deletion-policies/node-ready-stays-although
  test.each<{ what: string; isDryRun?: boolean; change: (world: OrphanWorld) => void }>([
    { what: 'its VM is listed', change: (world) => void (world.provider.listed = [VM]) },
    { what: 'its class cannot be listed', change: (world) => void (world.provider.listed = FAILURE) },
    {
      what: 'another Machine has its VM',
      change: (world) => void (world.machines = [machine((m) => void (m.spec.providerID = VM.providerID))]),
    },
    { what: 'it is ready itself', change: (world) => world.nodes.put(nodeOf(VM.providerID, 'True')) },
    { what: 'it is ready and shows no VM', change: (world) => world.nodes.put(nodeOf('', 'True')) },
    { what: 'nothing is to be removed', isDryRun: true, change: () => undefined },
  ])('stays while $what', async ({ change, isDryRun = false }) => {
    const world = new OrphanWorld(isDryRun);
    const late = noted(world);
    world.provider.listed = [];
    change(world);

    for (let i = 0; i < 3; i++) {
      await world.look();
      world.clock.advance(GRACE_MS);
    }

    expect(late).toEqual([]);
  });

  describe('and the note of it on a class', () => {
    const KEPT = expect.stringMatching(
      /^Could not delete the remaining resources of Machine m-1, which was removed by force: another Machine has this name .* remove annotation forced-removal\.safety\.machine\.sapcloud\.io\//,
    );
    /** Another Machine needs the class. */
    const inUse = (world: OrphanWorld): DeletedMachine[] => {
      world.machines = [machine((m) => void Object.assign(m.metadata, { name: 'm-2', uid: 'uid-of-m-2' }))];
      world.machines[0]!.spec.providerID = 'sim:///m-2';
      return noted(world);
    };
    const looks = async (world: OrphanWorld, listed: readonly ListedMachine[] = []): Promise<void> => {
      world.provider.listed = listed;
      for (let i = 0; i < 3; i++) {
        await world.look();
        world.clock.advance(GRACE_MS);
      }
    };

    test('goes, or is tried again to go, once VM and Node are gone: a class bears so many only', async () => {
      const world = new OrphanWorld();
      inUse(world);
      world.client.failures.push(new Error('refused'));

      await looks(world);

      const [key = ''] = Object.keys(world.oneClass.metadata.annotations ?? {});
      const { uid } = world.oneClass.metadata;
      expect(world.client.writes).toMatchObject([
        { verb: 'patch', what: 'machineclasses/class-1', uid, body: { metadata: { annotations: { [key]: null } } } },
        { verb: 'patch', what: 'machineclasses/class-1' },
      ]);
    });

    test.each<{ what: string; change: (world: OrphanWorld) => void }>([
      { what: 'there', change: ({ nodes }) => nodes.put(nodeOf(VM.providerID, 'Unknown')) },
      { what: 'ready', change: ({ nodes }) => nodes.put(nodeOf(VM.providerID, 'True')) },
    ])('stays while the Node is $what', async ({ change }) => {
      const world = new OrphanWorld();
      inUse(world);
      change(world);

      await looks(world);

      expect(world.client.writes).toEqual([]);
    });

    // promise: deletion-policies/left-beside-vm-list
    // promise: openstack/deletion/first-search-vms
    test('goes with ports and disks that no list shows: the driver deletes by name and UID once more', async () => {
      const world = new OrphanWorld();
      noted(world);
      world.provider.listed = FAILURE;
      await world.look();
      expect(world.provider.deleted).toEqual([]);

      await looks(world);

      const { uid } = machine().metadata;
      expect(world.provider.deleted).toEqual([
        { metadata: { name: 'm-1', namespace: 'default', uid }, spec: { providerID: VM.providerID } },
      ]);
      expect(world.client.writes).not.toEqual([]);
    });

    test('has its VM deleted with its Node when a list shows the VM, and once only while a class cannot be listed', async () => {
      const world = new OrphanWorld();
      noted(world);
      world.provider.listed = [VM];
      await world.look();
      await world.look();
      expect(world.cleaned).toEqual(['m-1']);
      const { length } = world.provider.deleted;

      world.provider.listed = FAILURE;
      await world.look();
      world.provider.listed = [VM];
      await world.look();

      expect(world.provider.deleted.filter(({ metadata }) => metadata.uid !== undefined)).toHaveLength(length);
    });

    test('goes although nobody ever knew the VM, once the driver says that there is none and none is listed', async () => {
      const world = new OrphanWorld();
      const former = machine((m) => delete m.spec.providerID);
      Object.assign(world.oneClass.metadata, { annotations: noteOfForcedRemoval(former) });
      world.provider.failure = new DriverError('NotFound', 'nothing');
      await world.look();
      await world.look();
      expect(world.client.writes).toEqual([]);

      await looks(world);

      expect(world.provider.deleted[0]).toMatchObject({ metadata: { uid: former.metadata.uid }, spec: {} });
      expect(world.client.writes).not.toEqual([]);
    });

    test('stays while the driver cannot delete what is left, which is told and tried again', async () => {
      const world = new OrphanWorld();
      inUse(world);
      world.provider.failure = FAILURE;

      await looks(world);
      expect(world.client.writes).toEqual([]);
      expect(world.messages).toContainEqual(
        expect.stringMatching(
          /^Could not delete the remaining resources of Machine m-1, which was removed by force: .*no answer/,
        ),
      );
      world.provider.failure = undefined;
      await looks(world);

      expect(world.messages).toContain('Deleted the remaining resources of Machine m-1, which was removed by force.');
      expect(world.client.writes).not.toEqual([]);
    });

    describe('whose name another Machine has by now', () => {
      const OTHER: ListedMachine = { providerID: 'sim:///other', machineName: 'm-1', machineUID: 'u-new' };
      const namesake = machine((m) => {
        m.metadata.uid = 'u-new';
        m.spec.providerID = OTHER.providerID;
      });

      function named(): OrphanWorld {
        const world = new OrphanWorld();
        noted(world);
        Object.assign(world, { machines: [namesake], namesakes: ['u-new'], liveNamesake: 'u-new' });
        return world;
      }

      test('leaves the Node alone, which may be of that one', async () => {
        const world = named();

        await looks(world, [OTHER, VM]);

        expect(world.provider.deleted.map(({ metadata }) => metadata.uid)).toContain(machine().metadata.uid);
        expect(world.cleaned).toEqual([]);
      });

      test('goes, once the VM of that one is listed with its UID', async () => {
        const world = named();

        await looks(world, [OTHER]);

        const { uid } = machine().metadata;
        expect(world.provider.deleted.map(({ metadata }) => metadata.uid)).toContain(uid);
        expect(world.provider.deleted.map(({ metadata }) => metadata.uid)).not.toContain('u-new');
      });

      test.each<{ what: string; vm?: ListedMachine; change?: (world: OrphanWorld) => void }>([
        { what: 'the VM of that one has no UID', vm: { ...OTHER, machineUID: undefined } },
        { what: 'the VM of that one is not listed', vm: { ...OTHER, providerID: 'sim:///third' } },
        { what: 'a third one has it in the caches', change: (world) => void (world.namesakes = ['u-new', 'u-3']) },
        { what: 'a third one has it at the API server', change: (world) => void (world.liveNamesake = 'u-3') },
      ])('has nothing deleted by name while $what', async ({ vm = OTHER, change }) => {
        const world = named();
        change?.(world);

        await looks(world, [vm]);

        expect(world.provider.deleted.filter(({ metadata }) => metadata.uid === machine().metadata.uid)).toEqual([]);
      });
    });

    describe('whose name a Machine in another namespace with the same target cluster has', () => {
      const ELSEWHERE: ListedMachine = {
        providerID: 'sim:///other',
        machineName: 'm-1',
        machineUID: 'u-new',
        machineNamespace: 'other',
      };

      function named(): OrphanWorld {
        const world = new OrphanWorld();
        noted(world);
        const namesake = machine((m) => {
          Object.assign(m.metadata, { namespace: 'other', uid: 'u-new' });
          m.spec.providerID = ELSEWHERE.providerID;
        });
        return Object.assign(world, { elsewhere: [namesake], liveNamesake: 'u-new' });
      }

      test('goes, once the VM of that one is listed with its UID', async () => {
        const world = named();

        await looks(world, [ELSEWHERE]);
        // What is done already is not kept for a new one.
        Object.assign(world, { namesakes: ['u-3'] });
        await looks(world, [ELSEWHERE]);

        expect(world.provider.deleted.map(({ metadata }) => metadata.uid)).toEqual([machine().metadata.uid]);
        expect(world.client.writes).not.toEqual([]);
        expect(world.messages).not.toContainEqual(KEPT);
      });

      test.each<{ what: string; listed: readonly ListedMachine[] }>([
        { what: 'not listed', listed: [] },
        { what: 'listed without UID', listed: [{ ...ELSEWHERE, machineUID: undefined }] },
      ])('stays while the VM of that one is $what, which is told from the second look on', async ({ listed }) => {
        const world = named();
        world.provider.listed = listed;

        await world.look();
        expect(world.messages).not.toContainEqual(KEPT);
        world.clock.advance(GRACE_MS);
        await world.look();

        expect(world.provider.deleted).toEqual([]);
        expect(world.messages).toContainEqual(KEPT);
      });
    });

    test.each<{ what: string; isDryRun?: boolean; change: (world: OrphanWorld) => void }>([
      { what: 'the caches show a Machine of its name', change: (world) => void (world.namesakes = ['u-new']) },
      {
        what: 'the API server shows a Machine of its name that the caches do not show yet',
        change: (world) => void (world.liveNamesake = 'u-new'),
      },
      {
        what: 'there is a Machine of its name',
        change: (world) => void (world.machines = [machine((m) => void (m.spec.providerID = 'sim:///other'))]),
      },
      {
        what: 'another Machine has its VM',
        change: (world) => void (world.machines = [machine((m) => void (m.metadata.name = 'm-2'))]),
      },
      { what: 'nothing is to be removed', isDryRun: true, change: () => undefined },
    ])('has nothing deleted by name while $what', async ({ change, isDryRun = false }) => {
      const world = new OrphanWorld(isDryRun);
      noted(world);
      change(world);

      await looks(world);

      expect(world.provider.deleted).toEqual([]);
    });

    test('stays until the VM is not listed any more, although it was deleted', async () => {
      const world = new OrphanWorld();
      inUse(world);
      world.gone.add({ name: 'm-1', nodeName: 'n-1', providerID: VM.providerID });
      await world.look();
      expect(world.client.writes).toEqual([]);

      await looks(world);

      expect(world.client.writes).not.toEqual([]);
    });
  });
});
