import type { Event } from '../../../pkg/apis/wire.ts';
import type { KubeObject } from '../../../pkg/apis/meta.ts';
import { keepAliveDuring } from '../../../pkg/clock/keep-alive.ts';
import { SystemClock } from '../../../pkg/clock/system-clock.ts';
import type { Reader } from '../../../pkg/kube/client.ts';
import { loadEndpoint } from '../../../pkg/kube/config.ts';
import { ConfigError } from '../../../pkg/kube/config-error.ts';
import { ApiError } from '../../../pkg/kube/errors.ts';
import { HttpReader } from '../../../pkg/kube/http-reader.ts';
import { events, type Resource } from '../../../pkg/kube/resource.ts';
import { Transport } from '../../../pkg/kube/transport.ts';
import { version } from '../version.ts';
import type { DescribeOptions } from './command.ts';

export interface DescribedKind<T extends KubeObject, Description> {
  readonly resource: Resource<T>;
  /** What is read beside the object and its Events, and what is made of all of it as it was at `nowMs`. */
  readonly describe: (reader: Reader, object: T, told: readonly Event[], nowMs: () => number) => Promise<Description>;
  readonly render: (description: Description, nowMs: number) => string;
}

/**
 * Prints what is known of an object. Resolves with the exit code: 0, or 1 when it could not be read, which was then said in one line on
 * standard error, in kubectl's words.
 */
export async function printDescription<T extends KubeObject, Description>(
  kind: DescribedKind<T, Description>,
  name: string,
  options: DescribeOptions,
): Promise<number> {
  const clock = new SystemClock();
  try {
    const description = await keepAliveDuring(() => read(kind, name, options, clock));
    const isJSON = options.output === 'json';
    console.log(isJSON ? JSON.stringify(description, undefined, 2) : kind.render(description, clock.now()));
    return 0;
  } catch (err) {
    const text = failureText(err);
    if (text === undefined) throw err;
    console.error(text);
    return 1;
  }
}

async function read<T extends KubeObject, Description>(
  { resource, describe }: DescribedKind<T, Description>,
  name: string,
  { kubeconfig, namespace: asked }: DescribeOptions,
  clock: SystemClock,
): Promise<Description> {
  const endpoint = await loadEndpoint({ kubeconfig, env: process.env, clock, isInteractive: true });
  const transport = new Transport({ endpoint, clock, userAgent: `machinist/${version()} describe` });
  try {
    const reader = new HttpReader(transport);
    const context = endpoint.namespace ?? '';
    const namespace = asked || context || 'default';
    const object = await reader.get(resource, { namespace, name });
    const fieldSelector = `involvedObject.uid=${object.metadata.uid}`;
    const { items } = await reader.list(events, { namespace, fieldSelector });
    return await describe(reader, object, items, () => clock.now());
  } finally {
    await transport.close();
  }
}

/** What kubectl says of a failure; undefined when it is none of the cluster's, but a bug. */
function failureText(err: unknown): string | undefined {
  if (err instanceof ConfigError) return `error: ${err.message}`;
  if (!(err instanceof ApiError)) return undefined;
  const { code, reason, message, status } = err;
  if (code === 0) return `Unable to connect to the server: ${message}`;
  return `Error from server (${reason}): ${status?.message ?? message}`;
}
