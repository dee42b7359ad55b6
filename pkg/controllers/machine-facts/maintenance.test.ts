import { describe, expect, test } from '@jest/globals';

import { machine } from '../../../test/builders.ts';
import { isUnderMaintenance, maintenanceOf } from './maintenance.ts';

const ASKED = { 'machine.sapcloud.io/maintenance': 'true' };
const BEGUN = { 'machine.sapcloud.io/maintenance-since': '2026-01-01T00:00:00Z' };
const emptied = (what: string): Record<string, string> => ({ ...BEGUN, 'machine.sapcloud.io/maintenance-node': what });
const HOOK = { 'pre-drain.hook.machine.sapcloud.io/x': '' };

describe('what a Machine tells of its maintenance', () => {
  test.each<{ annotations: Record<string, string>; mirrored?: string; told: string | undefined; is: boolean }>([
    { annotations: {}, told: undefined, is: false },
    { annotations: {}, mirrored: 'NotInMaintenance', told: 'NotInMaintenance', is: false },
    // Its Node was not seen again.
    { annotations: {}, mirrored: 'InMaintenance', told: 'NotInMaintenance', is: false },
    { annotations: {}, mirrored: 'InvalidValue', told: 'InvalidValue', is: false },
    { annotations: { 'machine.sapcloud.io/maintenance': 'TRUE' }, told: 'InvalidValue', is: false },
    { annotations: { 'machine.sapcloud.io/maintenance': 'false' }, told: undefined, is: false },
    { annotations: ASKED, told: 'Requested', is: true },
    { annotations: BEGUN, told: 'Requested', is: true },
    { annotations: BEGUN, mirrored: 'NotInMaintenance', told: 'Requested', is: true },
    { annotations: { ...BEGUN, ...HOOK }, told: 'WaitingForHooks', is: true },
    { annotations: { ...BEGUN, ...HOOK }, mirrored: 'Draining', told: 'WaitingForHooks', is: true },
    { annotations: BEGUN, mirrored: 'Draining', told: 'Draining', is: true },
    { annotations: BEGUN, mirrored: 'DrainFailed', told: 'DrainFailed', is: true },
    { annotations: { ...emptied('uid'), ...HOOK }, mirrored: 'InMaintenance', told: 'InMaintenance', is: true },
    // Its Node cannot show it.
    { annotations: emptied('uid'), told: 'InMaintenance', is: true },
    { annotations: emptied('uid'), mirrored: 'NotInMaintenance', told: 'InMaintenance', is: true },
    { annotations: emptied('none'), mirrored: 'Draining', told: 'InMaintenance', is: true },
    { annotations: emptied('given-back'), mirrored: 'InMaintenance', told: 'NotInMaintenance', is: true },
    { annotations: emptied('given-back'), mirrored: 'UncordonFailed', told: 'UncordonFailed', is: true },
  ])('$annotations, Node $mirrored: $told, under maintenance: $is', ({ annotations, mirrored, told, is }) => {
    const one = machine((m) => {
      m.metadata.annotations = annotations;
      const condition = { type: 'Maintenance', status: 'False', reason: mirrored ?? '', message: 'm' };
      m.status.conditions = mirrored === undefined ? [] : [condition];
    });

    const found = maintenanceOf(one);

    expect(found?.reason).toBe(told);
    expect(found?.status).toBe(told === undefined ? undefined : told === 'InMaintenance' ? 'True' : 'False');
    expect(isUnderMaintenance(one)).toBe(is);
  });
});
