import { describe, expect, test } from '@jest/globals';

import { addressOf, queryOf } from './address.ts';
import { machines, nodes, pods } from './resource.ts';

describe('addressOf', () => {
  test.each([
    { resource: nodes, at: {}, path: '/api/v1/nodes', template: '/api/v1/nodes', label: 'nodes' },
    {
      resource: pods,
      at: { namespace: 'ns', name: 'p', subresource: 'eviction' },
      path: '/api/v1/namespaces/ns/pods/p/eviction',
      template: '/api/v1/namespaces/%7Bnamespace%7D/pods/%7Bname%7D/eviction',
      label: 'pods/eviction',
    },
    {
      resource: machines,
      at: { namespace: 'ns', name: 'a/b' },
      path: '/apis/machine.sapcloud.io/v1alpha1/namespaces/ns/machines/a%2Fb',
      template: '/apis/machine.sapcloud.io/v1alpha1/namespaces/%7Bnamespace%7D/machines/%7Bname%7D',
      label: 'machines',
    },
  ])('$path', ({ resource, at, path, template, label }) => {
    expect(addressOf(resource, at)).toEqual({ path, template, label });
  });
});

describe('queryOf', () => {
  test('leaves out what is undefined or empty and escapes the rest', () => {
    expect(queryOf({ labelSelector: 'a=b,c', limit: 500, continue: undefined, resourceVersion: '' })).toBe(
      '?labelSelector=a%3Db%2Cc&limit=500',
    );
    expect(queryOf({})).toBe('');
  });
});
