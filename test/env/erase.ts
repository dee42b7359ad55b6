import { existsSync } from 'node:fs';

import { Client } from 'undici';

import { etcdSocket } from '../../hack/control-plane/arguments.ts';
import type { Connection } from '../../hack/control-plane/connection.ts';

const REGISTRY = '/registry/';
const AFTER_REGISTRY = '/registry0'; // the first key after all that begin with it

/** A namespace of a test that is over. */
interface Erased {
  readonly name: string;
  /** Its resourceVersion when it was created: what is in it is younger. */
  readonly createdAt: string;
}

/**
 * Removes a namespace and all that is in it from etcd, whatever finalizers hold it: the server and those who watch are told of deletions.
 * kube-controller-manager would empty it by a list and a deletion of every kind that the server knows, some ninety requests, for each test.
 * The server must have been asked for the deletion before, so that it takes nothing new in it.
 */
export async function erase(connection: Connection, { name, createdAt }: Erased): Promise<void> {
  const socketPath = etcdSocket(connection.directory);
  if (!existsSync(socketPath)) return; // a simulated server has done so
  const etcd = new Client('http://etcd', { socketPath });
  try {
    const { kvs = [] } = await ask<{ kvs?: readonly { key: string }[] }>(etcd, 'range', {
      key: encode(REGISTRY),
      range_end: encode(AFTER_REGISTRY),
      keys_only: true,
      min_create_revision: createdAt,
    });
    const folder = `/${name}/`;
    const folders = kvs
      .map(({ key }) => Buffer.from(key, 'base64').toString())
      .filter((key) => key.includes(folder))
      .map((key) => key.slice(0, key.indexOf(folder) + folder.length));
    const ranges = [...new Set(folders)].map((key) => ({
      key: encode(key),
      range_end: encode(`${key.slice(0, -1)}0`),
    }));
    const itself = { key: encode(`${REGISTRY}namespaces/${name}`) };
    await ask(etcd, 'txn', { success: [...ranges, itself].map((range) => ({ request_delete_range: range })) });
  } finally {
    await etcd.destroy();
  }
}

/** One request to etcd's gateway for JSON; throws with its words when it refuses. */
async function ask<T>(etcd: Client, call: 'range' | 'txn', body: unknown): Promise<T> {
  const answer = await etcd.request({ method: 'POST', path: `/v3/kv/${call}`, body: JSON.stringify(body) });
  if (answer.statusCode === 200) return (await answer.body.json()) as T; // by etcd's contract
  throw new Error(`etcd, ${call}: ${answer.statusCode} ${await answer.body.text()}`);
}

/** Keys travel as base64. */
function encode(key: string): string {
  return Buffer.from(key).toString('base64');
}
