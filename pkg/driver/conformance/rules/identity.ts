import type { Rules } from '../rule.ts';
import { codeName, UnexpectedAnswer, Violation } from '../violation.ts';

/** An id is written by people, too. */
export const FOREIGN_ID =
  "An id is no proof: a VM with the provider_id of a machine that carries another UID, name, namespace or cluster is another machine's, and neither shown nor deleted for this one; the answer is NotFound, or OutOfRange.";

/** Whose VM a VM is, and what it means that there is none. */
export const IDENTITY: Rules = {
  'status-by-name-and-by-id': {
    sentence: 'Finds the VM of a machine: by `machine.provider_id` if set, else by cluster, namespace, name and UID.',
    async run(scene, machine) {
      const { providerId: providerID, nodeName } = await scene.made(machine);

      for (const [how, subject] of [
        ['its name', machine],
        ['its provider ID', { ...machine, providerID }],
      ] as const) {
        const found = await scene.found(subject);
        if (found.providerId !== providerID || found.nodeName !== nodeName) {
          throw new Violation(
            `the lookup by ${how} returned VM ${found.providerId} with node ${found.nodeName}`,
            `${providerID} with node ${nodeName}`,
          );
        }
      }
    },
  },
  'status-of-an-unknown-machine': {
    sentence: 'The manager acts on NotFound, so it is believed only in the field `failure`, never as a gRPC status.',
    async run(scene) {
      const { failure } = await scene.status(scene.machine('a'));
      if (failure !== undefined && codeName(failure) === 'NotFound') return;
      throw new UnexpectedAnswer(
        'GetMachineStatus of a machine that never had a VM',
        failure,
        'NotFound in the field failure',
      );
    },
  },
  'status-of-another-uid': {
    sentence: "A VM without such a UID, named as its machine, is that machine's VM; a VM with another UID is not.",
    async run(scene, machine) {
      await scene.made(machine);

      await scene.requireNone({ ...machine, uid: 'uid-other' }, 'a machine of the same name with another UID');
    },
  },
  'status-of-another-cluster': {
    sentence:
      "VMs are tagged with it, so that two clusters in one account of the provider do not see each other's VMs.",
    async run(scene, machine) {
      await scene.made(machine);

      await scene.requireNone(
        { ...machine, cluster: `${scene.cluster}-other` },
        'a machine of the same name in another cluster',
      );
    },
  },
  'status-by-a-foreign-id': {
    sentence: FOREIGN_ID,
    async run(scene, machine) {
      const { providerId: providerID } = await scene.made(machine);
      const { name } = machine;

      await scene.requireNotShown(scene.machine('b', { providerID }), "a machine with the ID of another machine's VM");
      await scene.requireNotShown(
        scene.machine('b', { name, providerID }),
        'a machine with the name and ID of an earlier one',
      );
    },
  },
  'untagged-vm-by-a-foreign-id': {
    sentence: FOREIGN_ID,
    requires: ['--untagged-vm-command'],
    async run(scene, machine) {
      const providerID = await scene.untagged(machine);
      const other = scene.machine('b', { providerID });

      await scene.requireNotShown(other, "a machine with the ID of another machine's VM that carries no UID");
      await scene.deletedNothing(other);

      const { providerId: left } = await scene.found(machine);
      if (left !== providerID) throw new Violation(`VM ${left} was returned`, `${providerID}, as before`);
    },
  },
};
