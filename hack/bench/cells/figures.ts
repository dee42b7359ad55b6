/** Something that was measured. */
export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
}

export function figure(name: string, value: number, unit = ''): Figure {
  return { name, value, unit };
}

/** In one line; a number has three digits that mean something. */
export function describeFigure({ name, value, unit }: Figure): string {
  const digits = Math.abs(value) >= 100 || Number.isInteger(value) ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return `${name}: ${value.toFixed(digits)}${unit === '' ? '' : ` ${unit}`}`;
}
