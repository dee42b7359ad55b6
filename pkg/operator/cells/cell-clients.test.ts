import { expect, test } from '@jest/globals';

import type { KubeObject } from '../../apis/meta.ts';
import { MemoryInformer } from '../../../test/memory-informer.ts';
import { CellClients } from './cell-clients.ts';

/** Namespaces whose annotation `names` has the names of their clients. */
function clientsOf(namespaces: MemoryInformer<KubeObject>): { readonly clients: CellClients; readonly told: string[] } {
  const clients = new CellClients({ namespaces, namesIn: ({ names = '' }) => names.split(',').filter(Boolean) });
  const told: string[] = [];
  clients.onChange((cell) => told.push(cell));
  return { clients, told };
}

let version = 0;

function namespace(name: string, names?: string): KubeObject {
  const annotations = names === undefined ? {} : { names };
  return { metadata: { name, uid: name, resourceVersion: String(++version), annotations } } as unknown as KubeObject;
}

test('a client is of the namespace that names it, as long as it does', () => {
  const namespaces = new MemoryInformer<KubeObject>();
  const { clients, told } = clientsOf(namespaces);

  namespaces.put(namespace('a', 'x,y'));
  namespaces.put(namespace('b'));
  expect(clients.cellsOf(['y', 'z'])).toEqual(['a']);
  expect(clients.namesOf('a')).toEqual(['x', 'y']);
  expect(clients.cellsOf([])).toEqual([]);
  namespaces.put(namespace('a', 'y'));
  expect(clients.cellsOf(['x'])).toEqual([]);
  expect(clients.cellsOf(['y'])).toEqual(['a']);
  namespaces.remove('a');

  expect(clients.cellsOf(['y'])).toEqual([]);
  expect(clients.namesOf('a')).toEqual([]);
  expect(told).toEqual(['a', 'a', 'a']);
});

test('a name of two namespaces is told of both, until it is one’s alone', () => {
  const namespaces = new MemoryInformer<KubeObject>();
  const { clients, told } = clientsOf(namespaces);
  namespaces.put(namespace('a', 'x'));
  namespaces.put(namespace('b', 'y'));
  told.length = 0;

  namespaces.put(namespace('b', 'y,x'));

  expect(clients.cellsOf(['x'])).toEqual(['a', 'b']);
  expect(clients.cellsOf(['y'])).toEqual(['b']);
  expect(clients.clashOf('a')).toEqual({ name: 'x', other: 'b' });
  expect(clients.clashOf('b')).toEqual({ name: 'x', other: 'a' });
  expect(told.toSorted()).toEqual(['a', 'b']);
  told.length = 0;
  namespaces.put(namespace('b', 'y'));
  expect([clients.clashOf('a'), clients.clashOf('b')]).toEqual([undefined, undefined]);
  expect(told.toSorted()).toEqual(['a', 'b']);
});

test('names of two namespaces in one certificate are of neither alone', () => {
  const namespaces = new MemoryInformer<KubeObject>([]);
  const { clients } = clientsOf(namespaces);
  namespaces.put(namespace('a', 'x'));
  namespaces.put(namespace('b', 'y'));

  expect(clients.cellsOf(['x', 'y'])).toEqual(['a', 'b']);
});
