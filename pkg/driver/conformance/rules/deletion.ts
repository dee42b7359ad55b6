import type { Rules } from '../rule.ts';
import { FOREIGN_ID } from './identity.ts';
import { Violation } from '../violation.ts';

/** What is deleted, and that nothing is left of it. */
export const DELETION: Rules = {
  deletion: {
    sentence:
      'Success, or NotFound, says that nothing is left; a deletion that is still under way is answered with Aborted, or another failure, and asked again.',
    async run(scene, machine) {
      const { providerId: providerID } = await scene.made(machine);

      await scene.deleted({ ...machine, providerID });

      await scene.requireGone(machine);
    },
  },
  'deletion-by-name': {
    sentence:
      "A VM must therefore be findable by cluster, namespace and name of its machine, and be tagged with the machine's UID before it is started; with the name of its class too, where ListMachines returns the VMs of a class.",
    async run(scene, machine) {
      await scene.made(machine);

      await scene.deleted(machine);

      await scene.requireGone(machine);
    },
  },
  'deletion-repeated': {
    sentence:
      'A call may be repeated at any time: after a lost answer, after a restart of either side, by a new leader while the call of the old one still runs.',
    async run(scene, machine) {
      const { providerId: providerID } = await scene.made(machine);
      await scene.deleted({ ...machine, providerID });

      await scene.deleted({ ...machine, providerID });
      await scene.deleted(machine);
    },
  },
  'deletions-at-once': {
    sentence:
      'A call may be repeated at any time: after a lost answer, after a restart of either side, by a new leader while the call of the old one still runs.',
    async run(scene, machine) {
      await scene.made(machine);

      await scene.atOnce([1, 2, 3].map(() => () => scene.deleted(machine)));
    },
  },
  'deletion-of-another-uid': {
    sentence:
      "A VM must therefore be findable by cluster, namespace and name of its machine, and be tagged with the machine's UID before it is started; with the name of its class too, where ListMachines returns the VMs of a class.",
    async run(scene, machine) {
      const { providerId } = await scene.made(machine);

      await scene.deleted({ ...machine, uid: 'uid-other' });

      await scene.requireOnly(machine, providerId);
    },
  },
  'deletion-by-a-foreign-id': {
    sentence: FOREIGN_ID,
    async run(scene, machine) {
      const { providerId: providerID } = await scene.made(machine);

      await scene.deletedNothing(scene.machine('b', { providerID }));

      await scene.requireOnly(machine, providerID);
    },
  },
  'deletion-without-machine': {
    sentence:
      'For a VM without a machine, `machine` holds only namespace, name and provider_id, and exactly that VM is meant.',
    async run(scene) {
      const [one, two] = [scene.machine('a'), scene.machine('b')];
      const { providerId: providerID } = await scene.made(one);
      const { providerId: otherID } = await scene.made(two);

      // The name has gone to another machine meanwhile; only the id counts.
      await scene.deleted({ ...two, uid: '', providerID });

      await scene.requireGone(one);
      const left = await scene.found(two);
      if (left.providerId !== otherID)
        throw new Violation(
          `VM ${otherID}, which has the name from the request, was deleted`,
          `only ${providerID}, by its ID, to be deleted`,
        );
    },
  },
};
