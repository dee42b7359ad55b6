import { isQuantity } from '../../../apis/quantity.ts';
import type { Rules } from '../rule.ts';
import { UnexpectedAnswer, Violation } from '../violation.ts';

/** How many creations of one machine run at once. */
const AT_ONCE = 4;
/** When answers are lost: before the call is sent, in the middle of it, or after it. */
const LOST_AFTER_MS = [0, 5, 25, 100];

/** A machine has one VM, however often and in whatever way it is asked for. */
export const CREATION: Rules = {
  creation: {
    sentence: 'Resolves as soon as the provider has accepted the VM; it does not wait for the node to join.',
    async run(scene) {
      const vm = await scene.made(scene.machine('a'));
      if (vm.nodeName === '') throw new Violation('CreateMachine returned no node name', 'vm.node_name');
    },
  },
  capacity: {
    sentence:
      'Resources that the provider has given the VM, as quantities of Kubernetes by the names of a node\'s status.capacity, such as cpu: "4", memory: "8Gi".',
    async run(scene, machine) {
      const made = await scene.made(machine);
      const shown = await scene.found(machine);
      for (const [resource, amount] of Object.entries({ ...made.capacity, ...shown.capacity }))
        if (!isQuantity(amount))
          throw new Violation(
            `the capacity of the VM has ${JSON.stringify(amount)} for ${resource}`,
            'a quantity, such as 8Gi',
          );
    },
  },
  'creation-repeated': {
    sentence: 'If the machine has a VM already, that VM is returned and nothing is made.',
    async run(scene, machine) {
      const first = await scene.made(machine);
      await scene.requireOnly(machine, first.providerId);

      const again = await scene.made(machine);

      if (again.providerId !== first.providerId) {
        throw new Violation(
          `the second CreateMachine call returned ${again.providerId}`,
          `the same VM, ${first.providerId}`,
        );
      }
      await scene.requireOnly(machine, first.providerId);
    },
  },
  'creations-at-once': {
    sentence: 'Repeating it must never make a second VM.',
    requires: ['idempotent_create'],
    async run(scene, machine) {
      const made = await scene.atOnce(Array.from({ length: AT_ONCE }, () => () => scene.made(machine)));

      const ids = [...new Set(made.map((vm) => vm.providerId))];
      if (ids.length > 1) throw new Violation(`${AT_ONCE} concurrent calls returned ${ids.join(', ')}`, 'one VM');
      await scene.requireOnly(machine, made[0]?.providerId ?? '');
    },
  },
  'creation-after-a-lost-answer': {
    sentence: 'What it had begun at the provider by then is found by the next call.',
    requires: ['idempotent_create'],
    async run(scene, machine) {
      for (const afterMs of LOST_AFTER_MS) {
        const lost = new AbortController();
        const outcome = scene.create(machine, { signal: lost.signal }).catch(() => undefined);
        await scene.options.clock.sleep(afterMs, scene.signal);
        lost.abort(new Error('the answer is lost'));
        await outcome;
      }

      const { providerId } = await scene.made(machine);
      await scene.requireOnly(machine, providerId);
    },
  },
  'untagged-vm': {
    sentence: "A VM without such a UID, named as its machine, is that machine's VM; a VM with another UID is not.",
    requires: ['--untagged-vm-command'],
    async run(scene, machine) {
      const providerID = await scene.untagged(machine);

      const made = await scene.made(machine);

      if (made.providerId !== providerID) {
        throw new Violation(
          `CreateMachine returned ${made.providerId}`,
          `${providerID}, which was created for the machine by another tool`,
        );
      }
    },
  },
  'bad-class': {
    sentence: 'A bad value is answered with InvalidArgument that names the member.',
    requires: ['--bad-class'],
    async run(scene) {
      const { machineClass, badClass = machineClass } = scene.options;
      const { failure } = await scene.create(scene.machine('a', { machineClass: badClass }));

      const members = differingMembers(machineClass.providerSpec, badClass.providerSpec);
      const isNamed = members.some((member) => failure?.message.includes(member));
      if (failure?.code === INVALID_ARGUMENT && isNamed) return;
      const expected = `InvalidArgument with a message that names ${members.join(' or ')}`;
      throw new UnexpectedAnswer('CreateMachine with the class of --bad-class', failure, expected);
    },
  },
  'refused-creation-leaves-nothing': {
    sentence: 'The provider spec or secret is wrong, and nothing was made; the message names the member.',
    requires: ['--bad-class'],
    async run(scene) {
      const { machineClass, badClass = machineClass } = scene.options;
      await scene.create(scene.machine('a', { machineClass: badClass }));

      await scene.requireGone(scene.machine('a'), 'a machine whose creation was refused');
    },
  },
  'bad-secret': {
    sentence: 'The credentials are not accepted.',
    requires: ['--bad-secret'],
    async run(scene) {
      const { badSecretData: secretData = {} } = scene.options;
      const { failure } = await scene.create(scene.machine('a'), { secretData });

      if (failure !== undefined && REFUSED_CREDENTIALS.includes(failure.code)) return;
      const expected = 'Unauthenticated, PermissionDenied or InvalidArgument';
      throw new UnexpectedAnswer('CreateMachine with the Secret of --bad-secret', failure, expected);
    },
  },
};

const INVALID_ARGUMENT = 3;
/** InvalidArgument, PermissionDenied, Unauthenticated. */
const REFUSED_CREDENTIALS: readonly number[] = [INVALID_ARGUMENT, 7, 16];

/** Names of the members that two values do not have alike, the innermost ones. */
function differingMembers(good: unknown, bad: unknown, name = ''): readonly string[] {
  if (JSON.stringify(good) === JSON.stringify(bad)) return [];
  if (!isObject(good) || !isObject(bad)) return name === '' ? [] : [name];
  const names = new Set([...Object.keys(good), ...Object.keys(bad)]);
  return [...names].flatMap((member) =>
    differingMembers(good[member], bad[member], /^\d+$/.test(member) ? name : member),
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
