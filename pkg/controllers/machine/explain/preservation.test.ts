import { expect, test } from '@jest/globals';

import { machine } from '../../../../test/builders.ts';
import type { MachinePhase } from '../../../apis/machine/v1alpha1/phases.ts';
import { explain } from './explain.ts';

const NOW = Date.parse('2026-01-02T00:00:00Z');
const FUTURE = '2026-01-03T00:00:00Z';
const OWNER = { apiVersion: 'machine.sapcloud.io/v1alpha1', kind: 'MachineSet', name: 's', uid: 's', controller: true };

interface Case {
  readonly phase: MachinePhase;
  readonly expiry: string;
  readonly owned?: boolean;
  readonly reason: string;
  readonly message: RegExp;
  readonly nextStep: RegExp;
}

test.each<Case>([
  {
    phase: 'Running',
    expiry: FUTURE,
    reason: 'Running',
    message: /healthy\. It is preserved until 2026-01-03T00:00:00Z\.$/,
    nextStep: /^The preservation ends at 2026-01-03T00:00:00Z, or when annotation \S+ is removed/,
  },
  {
    phase: 'Failed',
    expiry: FUTURE,
    reason: 'PreservedFailed',
    message: /preserved until 2026-01-03T00:00:00Z; its pods move elsewhere/,
    nextStep: /it is not replaced automatically\. The preservation ends at 2026-01-03T00:00:00Z/,
  },
  {
    phase: 'Failed',
    expiry: FUTURE,
    owned: true,
    reason: 'PreservedFailed',
    message: /preserved until/,
    nextStep: /at 2026-01-03T00:00:00Z, or when the preservation is withdrawn, it is replaced/,
  },
  {
    phase: 'Failed',
    expiry: '2026-01-01T00:00:00Z',
    owned: true,
    reason: 'Failed',
    message: /^Created/,
    nextStep: /replaced by a new one/,
  },
])('a $phase machine preserved until $expiry, owned: $owned, is $reason', (given) => {
  const { phase, expiry, owned, reason, message, nextStep } = given;
  const told = explain(
    machine((m) => {
      m.status.currentStatus = { phase, preserveExpiryTime: expiry };
      if (owned === true) m.metadata.ownerReferences = [OWNER];
    }),
    NOW,
  );

  expect(told).toMatchObject({
    reason,
    message: expect.stringMatching(message),
    nextStep: expect.stringMatching(nextStep),
  });
});
