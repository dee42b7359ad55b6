/** For each Machine that a pass looks at, several times. */
const MS_A_MACHINE = 0.2;
/** A user who scales the largest set does not wait for longer. */
const LONGEST_MS = 1_000;

/**
 * How long a MachineSet or MachineDeployment of so many Machines rests after a pass. A pass looks at all of them, and nearly every change of
 * one of them asks for a pass: without a rest the passes of a fleet that comes, goes or rolls would cost the square of its size. With it
 * they take a share of the time that does not depend on the size.
 *
 * | Machines | rest   |
 * |----------|--------|
 * | 10       | 2 ms   |
 * | 500      | 100 ms |
 * | 5,000    | 1 s    |
 * | more     | 1 s    |
 */
export function restMsFor(machines: number): number {
  return Math.min(machines * MS_A_MACHINE, LONGEST_MS);
}
