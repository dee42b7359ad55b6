import type { Mutation } from '../mutation.ts';

/** What the driver of OpenStack decides about servers. */
export const OPENSTACK: readonly Mutation[] = [
  {
    in: 'isMarkedFor',
    from: ' || (isMadeFor && hasMarks(server))',
    to: '',
    why: 'A class whose tags are edited leaks all its servers.',
    tests: ['class-edits.test.ts'],
  },
  {
    in: 'isMarkedFor',
    from: ' || isOrphanOf(server, machine)',
    to: '',
    why: 'A server without a Machine is listed after an edit of its class, and never deleted.',
    tests: ['class-edits.test.ts'],
  },
  {
    in: 'leftMsOf',
    from: 'min(answerMs, Math.max(0, intent.sent.atMs + answerMs - nowMs)',
    to: 'max(0, intent.sent.atMs - nowMs',
    why: 'A request for a server whose answer was lost is repeated at once: two servers take each other the port.',
  },
  {
    in: 'firstPort',
    from: 'there.find(({ description }) => parseIntent(description)?.owner === owner) ?? there',
    to: 'bound',
    why: 'A floating IP is asked for on a port of any network, which a cloud refuses where no router leads outside.',
  },
  {
    in: 'requestDisk',
    from: 'const answer',
    to: '    await marks.unmark(mark, signal);\n    const answer',
    why: 'A machine is deleted while its disk may still appear, which nobody looks for any more.',
  },
];
