import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import type { Event } from '../../../pkg/apis/wire.ts';
import { keepAliveDuring } from '../../../pkg/clock/keep-alive.ts';
import { SystemClock } from '../../../pkg/clock/system-clock.ts';
import { ConfigError, loadEndpoint } from '../../../pkg/kube/config.ts';
import { ApiError } from '../../../pkg/kube/errors.ts';
import { HttpReader } from '../../../pkg/kube/http-reader.ts';
import { events, machines } from '../../../pkg/kube/resource.ts';
import { Transport } from '../../../pkg/kube/transport.ts';
import { version } from '../version.ts';
import type { DescribeOptions } from './command.ts';
import { describe } from './description.ts';
import { outageOf } from './outage.ts';
import { render } from './render.ts';

/**
 * Prints what is known of a Machine. Resolves with the exit code: 0, or 1 when it could not be read, which was then said in one
 * line on standard error, in kubectl's words.
 */
export async function describeMachine(name: string, options: DescribeOptions): Promise<number> {
  const clock = new SystemClock();
  try {
    const { machine, told, outage } = await keepAliveDuring(() => read(name, options, clock));
    const description = describe(machine, told, clock.now(), outage);
    console.log(
      options.output === 'json' ? JSON.stringify(description, undefined, 2) : render(description, clock.now()),
    );
    return 0;
  } catch (err) {
    const text = failureText(err);
    if (text === undefined) throw err;
    console.error(text);
    return 1;
  }
}

async function read(
  name: string,
  { kubeconfig, namespace: asked }: DescribeOptions,
  clock: SystemClock,
): Promise<{ machine: Machine; told: readonly Event[]; outage: string | undefined }> {
  const endpoint = await loadEndpoint({ kubeconfig, env: process.env, clock });
  const transport = new Transport({ endpoint, clock, userAgent: `machinist/${version()} describe` });
  try {
    const reader = new HttpReader(transport);
    const context = endpoint.namespace ?? '';
    const namespace = asked || context || 'default';
    const machine = await reader.get(machines, { namespace, name });
    const fieldSelector = `involvedObject.uid=${machine.metadata.uid}`;
    const { items } = await reader.list(events, { namespace, fieldSelector });
    return { machine, told: items, outage: await outageOf(reader, machine) };
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
