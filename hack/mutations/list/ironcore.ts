import type { Mutation } from '../mutation.ts';

const PLACE = ['pkg/controllers/ironcore/place.test.ts'];

/** IronCore. */
export const IRONCORE: readonly Mutation[] = [
  {
    file: 'pkg/controllers/ironcore/place.ts',
    from: 'capacity - taken.in(metadata.name, machineClass)',
    to: 'capacity',
    why: 'More machines are placed in a pool than it has places for.',
    tests: PLACE,
  },
  {
    file: 'pkg/controllers/ironcore/place.ts',
    from: 'found > best.free',
    to: 'found < best.free',
    why: 'Machines go to the fullest pool.',
    tests: PLACE,
  },
  {
    file: 'pkg/controllers/ironcore/places-taken.ts',
    from: 'this.#add(this.#byUID.get(uid), -1);',
    to: '',
    why: 'A machine counts twice: half of a pool stays empty.',
    tests: ['pkg/controllers/ironcore/places-taken.test.ts'],
  },
  {
    file: 'pkg/apis/ironcore/taint.ts',
    from: 'taints.every(',
    to: 'taints.some(',
    why: 'Machines are placed in pools that they are to be kept away from.',
    tests: ['pkg/apis/ironcore/taint.test.ts'],
  },
];
