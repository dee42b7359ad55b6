import { machines } from '../../../pkg/kube/resource.ts';
import type { DescribeOptions } from './command.ts';
import { describe } from './description.ts';
import { outageOf } from './outage.ts';
import { printDescription } from './print-description.ts';
import { renderDescription } from './render.ts';

/** Prints what is known of a Machine. Resolves with the exit code. */
export async function describeMachine(name: string, options: DescribeOptions): Promise<number> {
  return await printDescription(
    {
      resource: machines,
      describe: async (reader, machine, told, nowMs) => {
        const outage = await outageOf(reader, machine);
        return describe(machine, told, nowMs(), outage);
      },
      render: renderDescription,
    },
    name,
    options,
  );
}
