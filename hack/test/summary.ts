/** What a run of tests came to. */
export interface Total {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** Adds up the lines that the summary reporter wrote, one a jest run. */
export function sumUp(lines: string): Total {
  const rows = [...lines.matchAll(/(\d+) passed, (\d+) failed, (\d+) skipped/g)];
  const sum = (column: number): number => rows.reduce((total, row) => total + Number(row[column]), 0);
  return { passed: sum(1), failed: sum(2), skipped: sum(3) };
}
