import type { Mutation } from '../mutation.ts';

const SERVER_TESTS = ['pkg/drivers/openstack/server.test.ts'];

/** What the driver of OpenStack decides about servers. */
export const OPENSTACK: readonly Mutation[] = [
  {
    file: 'pkg/drivers/openstack/intent.ts',
    from: 'return Math.min(answerMs, Math.max(0, intent.sent.atMs + answerMs - nowMs));',
    to: 'return Math.max(0, intent.sent.atMs - nowMs);',
    why: 'A request for a server whose answer was lost is repeated at once: two servers take each other the port.',
    tests: SERVER_TESTS,
  },
  {
    file: 'pkg/drivers/openstack/server.ts',
    from: "if (wasLaunched || !['BUILD', 'ERROR', 'UNKNOWN'].includes(status)) return 'there';",
    to: "if (!['BUILD', 'ERROR', 'UNKNOWN'].includes(status)) return 'there';",
    why: 'A server that ran and shows an error is deleted as a failed build.',
    tests: SERVER_TESTS,
  },
  {
    file: 'pkg/drivers/openstack/server.ts',
    from: 'return byAge.find(({ id }) => portDevices.has(id)) ?? byAge[0];',
    to: 'return byAge[0];',
    why: 'Of two servers of a machine the one with the address is deleted.',
    tests: SERVER_TESTS,
  },
  {
    file: 'pkg/drivers/openstack/ownership.ts',
    from: 'return marks.every((key) => metadata[key] !== undefined);',
    to: 'return marks.some((key) => metadata[key] !== undefined);',
    why: 'A server that was taken out of our hands is deleted.',
    tests: SERVER_TESTS,
  },
  {
    file: 'pkg/drivers/openstack/turns.ts',
    from: '    await before;\n',
    to: '',
    why: 'After a call that gave up waiting, two work on one machine at the same time.',
    tests: ['pkg/drivers/openstack/turns.test.ts'],
  },
  {
    file: 'pkg/drivers/openstack/ports.ts',
    from: 'return there.find(({ description }) => parseIntent(description)?.owner === owner) ?? there[0];',
    to: 'return bound[0];',
    why: 'A floating IP is asked for on a port of any network, which a cloud refuses where no router leads outside.',
    tests: ['pkg/drivers/openstack/ports.test.ts'],
  },
  {
    file: 'pkg/drivers/openstack/answer.ts',
    from: "return /quota exceeded|maximum number/i.test(words) ? 'ResourceExhausted' : 'PermissionDenied';",
    to: "return 'PermissionDenied';",
    why: 'A quota that is used up looks like missing permissions.',
    tests: ['pkg/drivers/openstack/answer.test.ts'],
  },
  {
    file: 'pkg/drivers/openstack/volume.ts',
    from: "  if (status === 'error_deleting') return 'stuck';\n",
    to: '',
    why: 'A volume that Cinder will not delete is asked to go for ever, and nobody is told who can help.',
    tests: ['pkg/drivers/openstack/volume.test.ts'],
  },
  {
    file: 'pkg/drivers/openstack/intent.ts',
    from: 'return nowMs - atMs <= Math.min(LONGEST_READY_MS, answerMs / 2);',
    to: 'return true;',
    why: 'A server is asked for when the mark is nearly over: the next one who looks asks for a second.',
    tests: ['pkg/drivers/openstack/unanswered.test.ts'],
  },
  {
    file: 'pkg/drivers/openstack/creation.ts',
    from: "    const answer = await this.#send('making the root disk', mark,",
    to: "    await this.#ports.unmark(mark, signal);\n    const answer = await this.#send('making the root disk', mark,",
    why: 'A machine is deleted while its root disk may still appear, which nobody looks for any more.',
    tests: ['pkg/drivers/openstack/unanswered.test.ts'],
  },
  {
    file: 'pkg/drivers/openstack/deletion.ts',
    from: 'if (!hasDisk && !(await cloud.volumes.isOffered(signal))) return [];',
    to: 'if (!hasDisk) return [];',
    why: 'A class that loses the type of its disks leaves those that there are.',
    tests: ['pkg/drivers/openstack/unanswered.test.ts'],
  },
  {
    file: 'pkg/drivers/openstack/unanswered.ts',
    from: '      if (answer.status > 500) this.#note(description);\n',
    to: '',
    why: 'A port that Neutron makes after the answer of what stands in front of it stays when its machine goes.',
    tests: ['pkg/drivers/openstack/unanswered.test.ts'],
  },
];
