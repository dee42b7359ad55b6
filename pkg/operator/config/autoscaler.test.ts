import { describe, expect, test } from '@jest/globals';

import { configFrom } from './config.ts';

const configOf = (
  flags: Record<string, string | string[]>,
  program: Parameters<typeof configFrom>[0] = 'machinist run',
) =>
  configFrom(
    program,
    new Map(Object.entries(flags).map(([name, value]) => [name, Array.isArray(value) ? value : [value]])),
    [],
  ).autoscaler;

const TLS = { 'autoscaler-tls-cert': '/c', 'autoscaler-tls-key': '/k', 'autoscaler-tls-client-ca': '/ca' };

describe("the flags of the autoscaler's port", () => {
  test('without an address there is none', () => {
    expect(configOf({})).toBeUndefined();
    expect(configOf({ 'autoscaler-grpc-address': '127.0.0.1:1' }, 'machine-controller')).toBeUndefined();
  });

  test('say where it listens, who may call, and which groups there are', () => {
    const flags = {
      ...TLS,
      'autoscaler-grpc-address': '0.0.0.0:8086',
      'autoscaler-client-name': ['a', 'b'],
      nodes: ['0:3:default.pool-a', '1:2147483647:default.pool.b'],
      'autoscaler-gpu-types': 't4,a100',
    };

    expect(configOf(flags)).toEqual({
      listen: { kind: 'tcp', host: '0.0.0.0', port: 8086 },
      tls: { cert: '/c', key: '/k', clientCA: '/ca' },
      clientNames: ['a', 'b'],
      nodes: new Map([
        ['pool-a', { min: 0, max: 3 }],
        ['pool.b', { min: 1, max: 2_147_483_647 }],
      ]),
      gpuLabel: 'gardener.cloud/accelerator',
      gpuTypes: ['t4', 'a100'],
    });
  });

  test.each([
    { address: 'unix:///run/s', listen: { kind: 'unix', path: '/run/s' } },
    { address: '127.0.0.1:8086', listen: { kind: 'tcp', host: '127.0.0.1', port: 8086 } },
    { address: '[::1]:8086', listen: { kind: 'tcp', host: '::1', port: 8086 } },
    { address: 'localhost:8086', listen: { kind: 'tcp', host: 'localhost', port: 8086 } },
  ])('on $address plain text is allowed', ({ address, listen }) => {
    expect(configOf({ 'autoscaler-grpc-address': address })).toMatchObject({ listen, tls: undefined });
  });

  test.each([
    { flags: { 'autoscaler-grpc-address': '8086' }, says: 'host:port such as 0.0.0.0:8086, or unix:///path/to/socket' },
    { flags: { 'autoscaler-grpc-address': 'a:70000' }, says: 'host:port' },
    { flags: { 'autoscaler-grpc-address': 'unix://s' }, says: 'unix:///path/to/socket' },
    { flags: { 'autoscaler-grpc-address': '[1]:80' }, says: 'host:port' },
    {
      flags: { 'autoscaler-grpc-address': '0.0.0.0:1' },
      says: '--autoscaler-grpc-address=0.0.0.0:1 requires --autoscaler-tls-cert',
    },
    { flags: { 'autoscaler-grpc-address': 'machinist:1' }, says: 'because any caller can delete machines' },
    {
      flags: { 'autoscaler-grpc-address': '0.0.0.0:1', ...TLS, 'autoscaler-tls-key': '' },
      says: '--autoscaler-tls-key is missing',
    },
    {
      flags: { 'autoscaler-grpc-address': '127.0.0.1:1', 'autoscaler-tls-cert': '/c' },
      says: '--autoscaler-tls-key is missing',
    },
    { flags: { 'autoscaler-grpc-address': 'unix:///s', ...TLS }, says: 'remove the TLS flags' },
    {
      flags: { 'autoscaler-grpc-address': '0.0.0.0:1', ...TLS, 'autoscaler-client-name': '' },
      says: '--autoscaler-client-name must not be empty',
    },
    {
      flags: { 'autoscaler-grpc-address': '127.0.0.1:1', 'autoscaler-client-name': 'somebody' },
      says: '--autoscaler-client-name requires TLS: in plain text clients present no name',
    },
    { flags: { nodes: '0:1:default.a' }, says: '--nodes has no effect without --autoscaler-grpc-address' },
    { flags: TLS, says: '--autoscaler-tls-cert has no effect without' },
    {
      flags: { 'autoscaler-grpc-address': '127.0.0.1:1', controllers: 'machine,machine-class,secret' },
      says: 'requires controllers machine-deployment and machine-set',
    },
    {
      flags: { 'autoscaler-grpc-address': '127.0.0.1:1', 'target-kubeconfig': 'none', 'control-kubeconfig': 'k' },
      says: 'requires a target cluster',
    },
  ])('$flags is refused: $says', ({ flags, says }) => {
    expect(() => configOf(flags)).toThrow(says);
  });

  test.each([
    { nodes: 'a', says: 'expected <min>:<max>:<namespace>.<MachineDeployment>' },
    { nodes: '1:2:a', says: '<MachineDeployment>, such as 0:10:default.pool-a' },
    { nodes: '-1:2:default.a', says: 'expected <min>' },
    { nodes: '3:2:default.a', says: 'the minimum is greater than the maximum' },
    { nodes: '1:2147483648:default.a', says: 'must not exceed 2147483647' },
    { nodes: '1:2:other.a', says: 'this process serves only namespace default' },
    { nodes: ['1:2:default.a', '1:3:default.a'], says: 'a is listed twice' },
  ])('--nodes $nodes is refused: $says', ({ nodes, says }) => {
    expect(() => configOf({ 'autoscaler-grpc-address': 'unix:///s', nodes })).toThrow(says);
  });
});
