import { expect, test } from '@jest/globals';

import { machine } from '../../../test/builders.ts';
import type { Target } from '../../kube/targets/targets.ts';
import { concernedTargets } from './concerned-targets.ts';

const target = { cluster: 'target' } as Target;
const forced = machine((m) => void (m.metadata.labels['force-deletion'] = 'True'));

test.each([
  {
    title: 'machines wait for the cluster of their Nodes',
    machines: [machine(), machine()],
    of: target,
    want: ['target'],
  },
  { title: 'machines that go by force wait for none', machines: [forced], of: target, want: [] },
  { title: 'without a target cluster there is none to wait for', machines: [machine()], of: undefined, want: [] },
])('$title', ({ machines, of, want }) => {
  expect(concernedTargets({ of: () => of }, machines)).toEqual(want);
});
