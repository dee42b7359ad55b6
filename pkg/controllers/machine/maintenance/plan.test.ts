import { expect, test } from '@jest/globals';

import { type MaintenanceFacts, planMaintenance } from './plan.ts';

const FACTS: MaintenanceFacts = {
  isRequested: true,
  isRecorded: true,
  emptied: undefined,
  nodeUID: 'u',
  shown: undefined,
  isCordoned: true,
  isClockRestarted: true,
};

test.each([
  { facts: { isRecorded: false }, plan: 'begin' },
  { facts: { isRecorded: false, shown: 'InMaintenance' }, plan: 'begin' },
  { facts: {}, plan: 'empty' },
  { facts: { emptied: 'none' }, plan: 'empty' },
  { facts: { emptied: 'another' }, plan: 'empty' },
  { facts: { emptied: 'given-back' }, plan: 'empty' },
  { facts: { emptied: 'u', nodeUID: undefined }, plan: 'empty' },
  { facts: { emptied: 'u' }, plan: 'keep' },
  { facts: { emptied: 'u', isCordoned: false }, plan: 'empty' },
  { facts: { emptied: 'u', isCordoned: false, shown: 'NotInMaintenance' }, plan: 'empty' },
  { facts: { emptied: 'u', isCordoned: false, shown: 'InMaintenance' }, plan: 'keep' },
  { facts: { emptied: 'none', nodeUID: undefined, isCordoned: false }, plan: 'keep' },
  { facts: { emptied: 'none', nodeUID: undefined }, plan: 'keep' },
  { facts: { isRequested: false, isRecorded: false }, plan: 'leave-alone' },
  { facts: { isRequested: false, isRecorded: false, shown: 'NotInMaintenance' }, plan: 'leave-alone' },
  { facts: { isRequested: false, isRecorded: false, shown: 'InvalidValue' }, plan: 'leave-alone' },
  { facts: { isRequested: false, isRecorded: false, shown: 'Draining' }, plan: 'give-back' },
  { facts: { isRequested: false, isRecorded: false, shown: 'Draining', nodeUID: undefined }, plan: 'leave-alone' },
  { facts: { isRequested: false }, plan: 'withdraw' },
  { facts: { isRequested: false, emptied: 'u', shown: 'InMaintenance' }, plan: 'withdraw' },
  { facts: { isRequested: false, emptied: 'u', nodeUID: undefined }, plan: 'withdraw' },
  { facts: { isRequested: false, emptied: 'given-back' }, plan: 'give-back' },
  { facts: { isRequested: false, emptied: 'given-back', shown: 'InMaintenance' }, plan: 'give-back' },
  { facts: { isRequested: false, emptied: 'given-back', shown: 'NotInMaintenance' }, plan: 'end' },
  { facts: { isRequested: false, emptied: 'given-back', nodeUID: undefined }, plan: 'end' },
  {
    facts: { isRequested: false, shown: 'NotInMaintenance', emptied: 'given-back', isClockRestarted: false },
    plan: 'restart-clock',
  },
])('maintenance: $facts, so $plan', ({ facts, plan }) => {
  expect(planMaintenance({ ...FACTS, ...facts })).toBe(plan);
});
