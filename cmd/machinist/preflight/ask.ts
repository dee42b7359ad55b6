import { DriverError } from '../../../pkg/driver/error.ts';
import { ApiError } from '../../../pkg/kube/client/errors.ts';
import type { Transport } from '../../../pkg/kube/client/transport.ts';
import type { QueryResult } from './findings.ts';

/** For each answer of a server. */
export const TIMEOUT_MS = 10_000;

/** What was found, or the text of what came instead. */
export async function find<T>(ask: () => Promise<T>): Promise<QueryResult<T>> {
  try {
    return { value: await ask() };
  } catch (err) {
    if (err instanceof DriverError) return { error: err.detail };
    return { error: err instanceof Error ? err.message : String(err) };
  }
}

/** What is served at a path that is no object. Throws ApiError. */
export function read<T>(transport: Transport, path: string): Promise<T> {
  const address = { path, template: path, label: 'discovery' };
  return transport.request<T>({ method: 'GET', verb: 'get', address, timeoutMs: TIMEOUT_MS });
}

/** Undefined for what is not there. Rejects with any other error. */
export async function unlessAbsent<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (err) {
    if (ApiError.is(err, 'NotFound', 'NotServed')) return undefined;
    throw err;
  }
}

/** Whether it is for others to know. Rejects with any other error. */
export async function unlessRefused<T>(asked: Promise<T>): Promise<T | 'refused'> {
  try {
    return await asked;
  } catch (err) {
    if (ApiError.is(err, 'Forbidden')) return 'refused';
    throw err;
  }
}
