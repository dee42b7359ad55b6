import type { Rule } from '../rule.ts';
import { codeOf, UnexpectedAnswer, Violation } from '../violation.ts';

/** Whose VM a VM is, and what it means that there is none. */
export const IDENTITY: readonly Rule[] = [
  {
    name: 'status-by-name-and-by-id',
    sentence: 'Finds the VM of a machine: by `machine.provider_id` if set, else by cluster, namespace, name and UID.',
    async run(scene) {
      const machine = scene.machine('a');
      const { providerId: providerID, nodeName } = await scene.made(machine);

      for (const [how, subject] of [
        ['its name', machine],
        ['its provider id', { ...machine, providerID }],
      ] as const) {
        const found = await scene.found(subject);
        if (found.providerId !== providerID || found.nodeName !== nodeName) {
          throw new Violation(
            `by ${how}, VM ${found.providerId} with node ${found.nodeName} was found`,
            `${providerID} with node ${nodeName}`,
          );
        }
      }
    },
  },
  {
    name: 'status-of-an-unknown-machine',
    sentence: 'The manager acts on NotFound, so it is believed only in the field `failure`, never as a gRPC status.',
    async run(scene) {
      const { failure } = await scene.status(scene.machine('a'));
      if (failure !== undefined && codeOf(failure) === 'NotFound') return;
      throw new UnexpectedAnswer(
        'GetMachineStatus of a machine that never had a VM',
        failure,
        'NotFound in the field failure',
      );
    },
  },
  {
    name: 'status-of-another-uid',
    sentence: "A VM without such a UID, named as its machine, is that machine's VM; a VM with another UID is not.",
    async run(scene) {
      const machine = scene.machine('a');
      await scene.made(machine);

      await scene.requireNone({ ...machine, uid: 'uid-other' }, 'a machine of the same name with another UID');
    },
  },
  {
    name: 'status-of-another-cluster',
    sentence:
      "VMs are tagged with it, so that two clusters in one account of the provider do not see each other's VMs.",
    async run(scene) {
      const machine = scene.machine('a');
      await scene.made(machine);

      await scene.requireNone(
        { ...machine, cluster: `${scene.cluster}-other` },
        'a machine of the same name in another cluster',
      );
    },
  },
];
