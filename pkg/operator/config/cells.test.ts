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

  test('the process itself has no target cluster', () => {
    expect(configOf({ ...BASE, 'target-kubeconfig': 'other' }).clusters.targetKubeconfig).toBe('none');
  });

  test.each([
    { flags: { cells: 'a in b' }, says: '--cells: label selector: "a in b" is not valid' },
    { flags: { 'cell-kubeconfig-secret': '' }, says: '--cells=shoot needs --cell-kubeconfig-secret' },
    {
      flags: { 'cell-kubeconfig-secret': '', 'target-kubeconfig': 'none', 'cell-token-secret': 'token' },
      says: '--cell-token-secret=token has no effect without --cell-kubeconfig-secret; set both',
    },
    { flags: { 'cell-shards': '0' }, says: '--cell-shards: "0" is not valid' },
    { flags: { 'status-page': 'true' }, says: '--status-page=true is not supported with --cells=shoot' },
  ])('$flags are refused: $says', ({ flags, says }) => {
    expect(() => configOf({ ...BASE, ...flags })).toThrow(says);
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
