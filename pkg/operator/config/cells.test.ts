import { describe, expect, test } from '@jest/globals';

import { type CellsConfig, CellSettingsError } from './cells.ts';
import { configFrom } from './config.ts';

const BASE = { cells: 'shoot', 'cell-kubeconfig-secret': 'kubeconfig', 'control-kubeconfig': 'file' };

const configOf = (flags: Readonly<Record<string, string>>) =>
  configFrom('machinist run', new Map(Object.entries(flags).map(([name, value]) => [name, [value]])), []);

function cellsOf(flags: Readonly<Record<string, string>> = {}): CellsConfig {
  const { cells } = configOf({ ...BASE, ...flags });
  if (cells === undefined) throw new Error('no cells');
  return cells;
}

const setting = (name: string): string => `cell.machine.sapcloud.io/${name}`;

describe('flags of cells', () => {
  test('there are none unless a selector is given', () => {
    expect(configOf({}).cells).toBeUndefined();
    expect(cellsOf()).toMatchObject({ selector: 'shoot', kubeconfigSecret: 'kubeconfig', tokenSecret: '', shards: 16 });
  });

  test('are named in place of being selected, each once', () => {
    const named = cellsOf({ cells: '', 'cell-namespaces': 'a, b,a', namespace: 'leases' });

    expect(named).toMatchObject({ selector: '', names: ['a', 'b'] });
    expect(configOf({ ...BASE, cells: '', 'cell-namespaces': 'a' }).clusters.targetKubeconfig).toBe('none');
    // The Leases are in no namespace of theirs, whose RoleBinding has to be kept while it is deleted.
    expect(named.of('a', {})).toMatchObject({
      cells: undefined,
      clusters: { namespace: 'a' },
      leader: { namespace: 'leases' },
    });
    const namespaceOf = (name: string) => ({
      metadata: { name, uid: name, resourceVersion: '1', creationTimestamp: '' },
    });
    expect(['a', 'c'].map((name) => named.isSelected(namespaceOf(name)))).toEqual([true, false]);
  });

  test('the process itself has no target cluster', () => {
    expect(configOf({ ...BASE, 'target-kubeconfig': '' }).clusters.targetKubeconfig).toBe('none');
  });

  test('all have the target cluster of the flags where they have none of their own', () => {
    const flags = { ...BASE, 'cell-kubeconfig-secret': '', 'target-kubeconfig': 'other' };
    const { cells, clusters } = configOf(flags);

    expect(cells?.hasOneTarget).toBe(true);
    expect(clusters).toMatchObject({ controlKubeconfig: 'file', targetKubeconfig: 'other' });
    expect(cells?.of('a', {})).toMatchObject({
      cells: undefined,
      clusters: { targetKubeconfig: 'other', namespace: 'a' },
    });
    // As it has always been: the control cluster.
    const alone = configOf({ ...BASE, 'control-kubeconfig': '', 'target-kubeconfig': 'other' });
    expect(alone.cells?.hasOneTarget).toBe(false);
    expect(alone.clusters).toMatchObject({ controlKubeconfig: 'other', targetKubeconfig: 'none' });
  });

  test.each([
    {
      flags: { cells: '', 'cell-namespaces': 'a', 'cell-kubeconfig-secret': '', 'target-kubeconfig': 'other' },
      says: '--target-kubeconfig=other is not supported with --cell-namespaces',
    },
    {
      flags: {
        'cell-kubeconfig-secret': '',
        'target-kubeconfig': 'other',
        'autoscaler-grpc-address': '0.0.0.0:8086',
      },
      says: '--autoscaler-grpc-address=0.0.0.0:8086 is not supported with --cells=shoot and --target-kubeconfig=other',
    },
    {
      flags: { cells: '', 'cell-namespaces': 'a,b', 'autoscaler-grpc-address': '0.0.0.0:8086' },
      says: '--autoscaler-grpc-address=0.0.0.0:8086 is not supported with --cell-namespaces=a,b; select the namespaces with --cells',
    },
    {
      flags: { 'cell-kubeconfig-secret': '', 'target-kubeconfig': 'other', 'cell-token-secret': 'token' },
      says: '--cell-token-secret=token has no effect without --cell-kubeconfig-secret',
    },
    { flags: { cells: 'a in b' }, says: '--cells: label selector: "a in b" is not valid' },
    { flags: { 'cell-kubeconfig-secret': '' }, says: '--cells=shoot needs --cell-kubeconfig-secret' },
    {
      flags: { 'cell-kubeconfig-secret': '', 'target-kubeconfig': 'none', 'cell-token-secret': 'token' },
      says: '--cell-token-secret=token has no effect without --cell-kubeconfig-secret; set both',
    },
    {
      flags: { 'target-kubeconfig': 'other' },
      says: '--target-kubeconfig=other and --cell-kubeconfig-secret exclude each other',
    },
    { flags: { cells: '' }, says: '--cell-kubeconfig-secret has no effect without --cells' },
    {
      flags: { cells: '', 'cell-kubeconfig-secret': '', 'cell-token-secret': 'token' },
      says: '--cell-token-secret has no effect without --cells',
    },
    { flags: { 'cell-namespaces': 'a' }, says: '--cells and --cell-namespaces exclude each other' },
    {
      flags: { cells: '', 'cell-namespaces': 'a,B' },
      says: '--cell-namespaces: "B" is not the name of a namespace',
    },
    {
      flags: { cells: '', 'cell-namespaces': 'a', 'cell-kubeconfig-secret': '' },
      says: '--cell-namespaces=a needs --cell-kubeconfig-secret',
    },
    { flags: { 'cell-shards': '0' }, says: '--cell-shards: "0" is not valid' },
    { flags: { 'status-page': 'true' }, says: '--status-page=true is not supported with --cells=shoot' },
  ])('$flags are refused: $says', ({ flags, says }) => {
    expect(() => configOf({ ...BASE, ...flags })).toThrow(says);
  });
});

describe('the port for autoscalers of all namespaces', () => {
  const PORT = {
    'autoscaler-grpc-address': '0.0.0.0:8086',
    'autoscaler-tls-cert': '/c',
    'autoscaler-tls-key': '/k',
    'autoscaler-tls-client-ca': '/ca',
  };

  test.each([
    {
      flags: { 'autoscaler-grpc-address': '127.0.0.1:8086' },
      says: '--autoscaler-grpc-address=127.0.0.1:8086 requires --autoscaler-tls-cert, --autoscaler-tls-key, --autoscaler-tls-client-ca with --cells, because only the name in its certificate says which namespace a client may scale',
    },
    {
      flags: { 'autoscaler-grpc-address': 'unix:///run/s' },
      says: 'is not supported with --cells, because clients of a socket present no name; set host:port with',
    },
    {
      flags: { ...PORT, 'autoscaler-client-name': 'somebody' },
      says: 'remove it, and set annotation cell.machine.sapcloud.io/autoscaler-client-name of each namespace',
    },
    {
      flags: { ...PORT, 'cell-kubeconfig-secret': '', 'target-kubeconfig': 'none' },
      says: 'requires a target cluster',
    },
    { flags: { ...PORT, nodes: '0:1:a.pool,0:2:a.pool' }, says: 'a.pool is listed twice' },
  ])('$flags are refused: $says', ({ flags, says }) => {
    expect(() => configOf({ ...BASE, ...flags })).toThrow(says);
  });

  test('each namespace has its own groups and clients, and none that it does not name', () => {
    const cells = cellsOf({ ...PORT, nodes: '0:1:a.pool,0:2:b.pool,0:3:b.other' });
    const annotations = { [setting('autoscaler-client-name')]: 'x, y,,x', [setting('autoscaler-gpu-label')]: 'gpu' };

    expect(cells.clientNamesIn(annotations)).toEqual(['x', 'y']);
    expect(cells.clientNamesIn({})).toEqual([]);
    expect(cells.of('a', annotations).autoscaler).toMatchObject({
      nodes: new Map([['pool', { min: 0, max: 1 }]]),
      gpuLabel: 'gpu',
    });
    expect([...(cells.of('b', {}).autoscaler?.nodes.keys() ?? [])]).toEqual(['pool', 'other']);
    expect(cells.of('b', {}).autoscaler?.clientNames).toEqual([]);
  });

  test('names of clients make no other cell, and do no harm where no port is open', () => {
    const cells = cellsOf();
    const name = setting('autoscaler-client-name');

    expect(cells.isSetting(name)).toBe(false);
    expect(cells.isSetting(setting('autoscaler-gpu-label'))).toBe(true);
    expect(cells.of('a', { [name]: 'x' }).autoscaler).toBeUndefined();
  });
});

describe('settings of a namespace', () => {
  test('are those of the flags, in its namespace, until its annotations say otherwise', () => {
    const cells = cellsOf({ 'machine-drain-timeout': '1h', 'safety-up': '4' });

    const plain = cells.of('ns', { 'other.example.com/x': 'y' });
    const own = cells.of('ns', { [setting('machine-drain-timeout')]: '5m', [setting('node-conditions')]: 'A,B' });

    expect(plain.clusters.namespace).toBe('ns');
    expect(plain.leader.namespace).toBe('ns');
    expect(plain.cells).toBeUndefined();
    expect(plain.machine.drainTimeoutMs).toBe(3_600_000);
    expect(own.machine.drainTimeoutMs).toBe(300_000);
    expect(own.machine.nodeConditions).toEqual(['A', 'B']);
    expect(own.safety.up).toBe(4);
  });

  test.each([
    { flag: 'true', annotation: 'false', isDryRun: true },
    { flag: 'true', annotation: undefined, isDryRun: true },
    { flag: 'false', annotation: 'true', isDryRun: true },
    { flag: 'false', annotation: 'false', isDryRun: false },
  ])(
    'delete no VMs while the flag or the annotation wants a dry run: flag $flag, annotation $annotation',
    ({ flag, annotation, isDryRun }) => {
      const name = 'machine-safety-orphan-vms-dry-run';
      const own = cellsOf({ [name]: flag }).of('ns', annotation === undefined ? {} : { [setting(name)]: annotation });

      expect(own.safety.orphanVMsDryRun).toBe(isDryRun);
    },
  );

  test.each([
    { annotation: 'machine-drain-timeout', value: 'soon', says: '"soon" is not valid: expected a duration' },
    { annotation: 'safety-upp', value: '1', says: 'is not a setting: remove it, or use' },
    { annotation: 'driver', value: 'x=y', says: 'is not a setting' },
    { annotation: 'leader-elect', value: 'false', says: 'is not a setting' },
    { annotation: 'machine-safety-apiserver-statuscheck-period', value: '5s', says: 'must not be shorter than' },
  ])('$annotation: $value is refused by the name of the annotation', ({ annotation, value, says }) => {
    const read = () => cellsOf().of('ns', { [setting(annotation)]: value });

    expect(read).toThrow(CellSettingsError);
    expect(read).toThrow(`annotation ${setting(annotation)}`);
    expect(read).toThrow(says);
    expect(read).not.toThrow(/--cell\.machine/);
  });
});
