import { describe, expect, test } from '@jest/globals';

import { machineDeployment } from '../../test/builders.ts';
import { MemoryInformer } from '../../test/memory-informer.ts';
import { NODE_GROUP_MAX_ANNOTATION as MAX, NODE_GROUP_MIN_ANNOTATION as MIN } from '../apis/machine/v1alpha1/labels.ts';
import type { GroupLimits } from '../operator/config/autoscaler.ts';
import { NodeGroups } from './groups.ts';

const pool = (name: string, annotations: Record<string, string> = {}, isDeleted = false) =>
  machineDeployment((d) => {
    d.metadata.name = name;
    d.metadata.annotations = annotations;
    if (isDeleted) d.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
  });

function groups(deployments: readonly ReturnType<typeof pool>[], listed: Record<string, GroupLimits> = {}): NodeGroups {
  return new NodeGroups({
    deployments: new MemoryInformer(deployments),
    namespace: 'default',
    listed: new Map(Object.entries(listed)),
  });
}

describe('node groups', () => {
  test('are the MachineDeployments with limits, by name', () => {
    const found = groups([pool('b', { [MIN]: '0', [MAX]: '5' }), pool('c'), pool('a')], { a: { min: 1, max: 3 } });

    expect(found.list()).toEqual([
      { id: 'a', namespace: 'default', name: 'a', min: 1, max: 3 },
      { id: 'b', namespace: 'default', name: 'b', min: 0, max: 5 },
    ]);
    expect(found.get('b')).toMatchObject({ max: 5 });
    expect(found.get('c')).toBeUndefined();
    expect(found.get('gone')).toBeUndefined();
  });

  test('flag --nodes counts more than annotations', () => {
    const found = groups([pool('a', { [MIN]: 'x' })], { a: { min: 1, max: 3 } });

    expect(found.get('a')).toMatchObject({ min: 1, max: 3 });
  });

  test('a MachineDeployment that was stored without a spec is none, and says why', () => {
    const found = pool('a', { [MIN]: '0', [MAX]: '5' });
    delete (found as { spec?: unknown }).spec;

    expect(groups([found]).list()).toEqual([]);
    expect(groups([found], { a: { min: 0, max: 5 } }).list()).toEqual([]);
    expect(groups([found]).whyNot('a')).toContain('spec is missing');
  });

  test.each([
    { why: 'is being deleted', found: pool('a', { [MIN]: '0', [MAX]: '5' }, true) },
    { why: 'has a maximum of 0', found: pool('a', { [MIN]: '0', [MAX]: '0' }) },
  ])('a MachineDeployment that $why is none', ({ found }) => {
    expect(groups([found]).list()).toEqual([]);
    expect(groups([found]).faultOf(found)).toBeUndefined();
  });

  test.each([
    { annotations: { [MIN]: '1' }, what: 'the second is missing; set both, or remove both' },
    { annotations: { [MAX]: '1' }, what: 'the first is missing; set both, or remove both' },
    {
      annotations: { [MIN]: '-1', [MAX]: '5' },
      what: '"-1" is not valid; must be a whole number from 0 to 2147483647',
    },
    { annotations: { [MIN]: '1', [MAX]: '2147483648' }, what: '"2147483648" is not valid' },
    { annotations: { [MIN]: '1', [MAX]: '' }, what: '"" is not valid' },
    { annotations: { [MIN]: '6', [MAX]: '5' }, what: 'the minimum 6 is greater than the maximum 5' },
  ])('limits $annotations make no group, and what helps is told', ({ annotations, what }) => {
    const deployment = pool('a', annotations);
    const found = groups([deployment]);

    expect(found.list()).toEqual([]);
    expect(found.faultOf(deployment)).toEqual(expect.stringContaining(`${MAX}: ${what}`));
    expect(found.whyNot('a')).toEqual(expect.stringContaining(`MachineDeployment default/a: annotations ${MIN}`));
  });

  test.each([
    { what: 'does not exist', found: [] },
    { what: 'is being deleted', found: [pool('a', {}, true)] },
    {
      what: `has no limits, or a maximum of 0; set annotations ${MIN} and ${MAX}, or list it in --nodes`,
      found: [pool('a')],
    },
  ])('why there is no group is told: it $what', ({ what, found }) => {
    expect(groups(found).whyNot('a')).toBe(`MachineDeployment default/a ${what}`);
  });

  test('MachineDeployments that --nodes names and that do not exist are told', () => {
    expect(groups([pool('b')], { a: { min: 0, max: 1 }, b: { min: 0, max: 1 } }).missing()).toEqual(['a']);
  });
});
