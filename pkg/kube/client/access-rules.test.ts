import { expect, test } from '@jest/globals';

import { type AccessAttributes, grants } from './access-rules.ts';

const RULE = { verbs: ['get', 'list'], apiGroups: ['', 'apps'], resources: ['pods', 'pods/eviction'] };
const PODS: AccessAttributes = { verb: 'get', group: '', resource: 'pods' };

test.each([
  { title: 'its verbs, groups and resources', rule: RULE, may: PODS, granted: true },
  { title: 'an object of them by name', rule: RULE, may: { ...PODS, name: 'a' }, granted: true },
  { title: 'a subresource that it names', rule: RULE, may: { ...PODS, subresource: 'eviction' }, granted: true },
  { title: 'no other verb', rule: RULE, may: { ...PODS, verb: 'watch' }, granted: false },
  { title: 'no other group', rule: RULE, may: { ...PODS, group: 'batch' }, granted: false },
  { title: 'no other resource', rule: RULE, may: { ...PODS, resource: 'nodes' }, granted: false },
  {
    title: 'no subresource that it does not name',
    rule: RULE,
    may: { ...PODS, subresource: 'status' },
    granted: false,
  },
  {
    title: 'everything by stars',
    rule: { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
    may: { ...PODS, subresource: 'status' },
    granted: true,
  },
  {
    title: 'one subresource of all',
    rule: { ...RULE, resources: ['*/status'] },
    may: { ...PODS, subresource: 'status' },
    granted: true,
  },
  {
    title: 'not the resources whose subresource it names',
    rule: { ...RULE, resources: ['*/status'] },
    may: PODS,
    granted: false,
  },
  { title: 'a name', rule: { ...RULE, resourceNames: ['a'] }, may: { ...PODS, name: 'a' }, granted: true },
  { title: 'no other name', rule: { ...RULE, resourceNames: ['a'] }, may: { ...PODS, name: 'b' }, granted: false },
  { title: 'not all of which it names one', rule: { ...RULE, resourceNames: ['a'] }, may: PODS, granted: false },
  { title: 'nothing when it is empty', rule: {}, may: PODS, granted: false },
])('a rule grants $title', ({ rule, may, granted }) => {
  expect(grants(rule, may)).toBe(granted);
});
