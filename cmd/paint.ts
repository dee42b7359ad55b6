import { randomUUID } from 'node:crypto';
import { inspect } from 'node:util';

/** Texts from outside cannot contain it, because it is another one in each process. */
const OWN = randomUUID();

/** What `paint` leaves for `printable`; the group is the code of a colour. */
export const PAINT = new RegExp(`${OWN}\\[(\\d+)m`);

/** A text in a colour of our own, which `printable` tells from the colours of texts from outside. It has none unless `printable` has seen it. */
export function paint(colour: 'green' | 'yellow' | 'red', text: string): string {
  const [begin, end] = inspect.colors[colour] ?? [0, 0];
  return `${OWN}[${begin}m${text}${OWN}[${end}m`;
}
