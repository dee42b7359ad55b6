import type { Rules } from '../rule.ts';
import type { Scene } from '../scene.ts';
import type { Subject } from '../conversation.ts';
import { Violation } from '../violation.ts';

/** What is listed: whatever is on the list and has no machine is deleted. */
export const LISTS: Rules = {
  list: {
    sentence: "Name of the machine it was made for, from the VM's name or tags.",
    requires: ['ListMachines'],
    async run(scene, machine) {
      const { providerId } = await scene.made(machine);
      await scene.requireOnly(machine, providerId);

      const listed = await scene.list(machine);
      if (listed.some((one) => one.providerId === ''))
        throw new Violation('ListMachines returned an entry without provider_id', 'only VMs that have one');
      const [vm] = listed.filter((one) => one.machineName === machine.name);
      if (vm?.machineUid !== machine.uid)
        throw new Violation(`the VM is listed with machine_uid ${JSON.stringify(vm?.machineUid)}`, machine.uid);
      if (vm.machineNamespace !== '' && vm.machineNamespace !== machine.namespace) {
        throw new Violation(`the VM is listed with machine_namespace ${vm.machineNamespace}`, machine.namespace);
      }
    },
  },
  'list-in-pages': {
    sentence:
      "A VM that exists from the first to the last page must be on one of them; VMs without a UID tag, named and tagged as the provider's drivers always did, are listed too, and a VM whose deletion is under way may be.",
    requires: ['ListMachines'],
    async run(scene) {
      const machines = ['a', 'b', 'c'].map((letter) => scene.machine(letter));
      for (const machine of machines) {
        const { providerId } = await scene.made(machine);
        await scene.requireOnly(machine, providerId);
      }

      for (const pageSize of [1, 2]) {
        const names = (await scene.list(scene.machine('a'), pageSize)).map((vm) => vm.machineName);
        for (const { name } of machines) {
          const count = names.filter((one) => one === name).length;
          if (count !== 1)
            throw new Violation(`in pages of ${pageSize}, the VM of ${name} was listed ${count} times`, 'exactly one');
        }
      }
    },
  },
  'list-of-another-cluster': {
    sentence:
      'What is listed and has no machine is deleted, so a VM of another cluster or namespace must not be listed.',
    requires: ['ListMachines'],
    async run(scene, machine) {
      await scene.made(machine);

      await requireUnlisted(scene, machine, { ...machine, cluster: `${scene.cluster}-other` }, 'another cluster');
    },
  },
  'list-of-another-namespace': {
    sentence:
      'What is listed and has no machine is deleted, so a VM of another cluster or namespace must not be listed.',
    requires: ['ListMachines'],
    async run(scene, machine) {
      await scene.made(machine);

      const machineClass = scene.otherClass({ namespace: `${machine.namespace}-other` });
      await requireUnlisted(scene, machine, { ...machine, machineClass }, 'another namespace');
    },
  },
  'list-of-another-class': {
    sentence: 'The VMs made from the class asked for, found by the tag that names it.',
    requires: ['ListMachines', 'LIST_SCOPE_CLASS'],
    async run(scene, machine) {
      await scene.made(machine);

      const machineClass = scene.otherClass({ name: `${machine.machineClass.metadata.name}-other` });
      await requireUnlisted(scene, machine, { ...machine, machineClass }, 'another class');
    },
  },
};

/** The VM of a machine is not seen by who asks. */
async function requireUnlisted(scene: Scene, machine: Subject, asker: Subject, what: string): Promise<void> {
  // Once it is listed where it belongs, no list lags behind.
  const { providerId } = await scene.found(machine);
  await scene.requireOnly(machine, providerId);
  const seen = (await scene.list(asker)).find((vm) => vm.machineName === machine.name);
  if (seen !== undefined)
    throw new Violation(`ListMachines of ${what} returns ${seen.providerId}`, 'it not to be listed');
}
