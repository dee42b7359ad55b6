import { describe, expect, test } from '@jest/globals';

import { bootstrapKubeconfigOf } from './user-data.ts';

const token = 'abcdef.0123456789abcdef';

function config(change: Record<string, unknown> = {}): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: 'https://127.0.0.1:6443' } }],
    users: [{ name: 'u', user: { token } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
    ...change,
  });
}

const secretOf = (userData: string) => ({ userData: new TextEncoder().encode(userData) });

describe('the user data of a local machine', () => {
  test('may be JSON or YAML and is handed on as it is', () => {
    const yaml = `
clusters: [{ name: c, cluster: { server: "https://127.0.0.1:6443" } }]
users: [{ name: u, user: { token: ${token} } }]
contexts: [{ name: x, context: { cluster: c, user: u } }]
current-context: x
`;

    expect(bootstrapKubeconfigOf(secretOf(yaml))).toBe(yaml);
    expect(bootstrapKubeconfigOf(secretOf(config()))).toBe(config());
  });

  test.each([
    { what: 'nothing', userData: ' ', why: 'secret: userData is missing or empty' },
    { what: 'a script', userData: '#!/bin/sh\necho hello\n', why: 'userData' },
    { what: 'broken YAML', userData: 'a: [', why: 'must be a kubeconfig as YAML or JSON' },
    { what: 'no such context', userData: config({ 'current-context': 'y' }), why: 'no entry "y" in contexts' },
    { what: 'no cluster', userData: config({ clusters: [] }), why: 'no entry "c" in clusters' },
    { what: 'no server', userData: config({ clusters: [{ name: 'c', cluster: {} }] }), why: 'has no server' },
    { what: 'no token', userData: config({ users: [{ name: 'u', user: {} }] }), why: 'has no token' },
    {
      what: 'a placeholder',
      userData: config({ users: [{ name: 'u', user: { token: '<<BOOTSTRAP_TOKEN>>' } }] }),
      why: 'the placeholder <<BOOTSTRAP_TOKEN>> was not replaced',
    },
  ])('is refused when it is or has $what', ({ userData, why }) => {
    expect(() => bootstrapKubeconfigOf(secretOf(userData))).toThrow(
      expect.objectContaining({ code: 'InvalidArgument', terminal: true, detail: expect.stringContaining(why) }),
    );
  });

  test('is never quoted in the answer', () => {
    const secret = 'token: abcdef.0123456789abcdef\n  - [';

    expect(() => bootstrapKubeconfigOf(secretOf(secret))).toThrow(
      expect.objectContaining({ detail: expect.not.stringContaining('0123456789') }),
    );
  });
});
