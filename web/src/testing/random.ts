// Numbers that are the same in every run, so that what fails once fails again.
export class Random {
  #state: number;
  constructor(seed: number) {
    this.#state = seed * 2654435761 + 1;
  }
  next(): number { // from 0 to below 1
    this.#state = (Math.imul(this.#state ^ (this.#state >>> 15), 2246822519) + 374761393) | 0;
    return ((this.#state ^ (this.#state >>> 13)) >>> 0) / 2 ** 32;
  }
  below(n: number): number {
    return Math.floor(this.next() * n);
  }
  of<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!;
  }
}
