"""SciPy's stiff solvers beside flowline's: one solve per line of standard input.

Called by `benches/peers/rust`. An input line is `PROBLEM METHOD RTOL`; the answer is `STEPS EVALUATIONS FACTORIZATIONS Y...`,
or `error` and its text. Functions are plain Python on lists, which is faster than NumPy for so few components.
"""
import math
import sys
import warnings

import numpy as np
from scipy.integrate import solve_ivp


def rober(_t, y):
    y0, y1, y2 = y.tolist()
    a, b, c = 0.04 * y0, 3e7 * y1 * y1, 1e4 * y1 * y2
    return [-a + c, a - b - c, b]


def rober_jacobian(_t, y):
    _, y1, y2 = y.tolist()
    b, c2, c1 = 6e7 * y1, 1e4 * y2, 1e4 * y1
    return [[-0.04, c2, c1], [0.04, -b - c2, -c1], [0.0, b, 0.0]]


def hires(_t, y):
    y0, y1, y2, y3, y4, y5, y6, y7 = y.tolist()
    bound = 280.0 * y5 * y7
    return [
        -1.71 * y0 + 0.43 * y1 + 8.32 * y2 + 0.0007,
        1.71 * y0 - 8.75 * y1,
        -10.03 * y2 + 0.43 * y3 + 0.035 * y4,
        8.32 * y1 + 1.71 * y2 - 1.12 * y3,
        -1.745 * y4 + 0.43 * y5 + 0.43 * y6,
        -bound + 0.69 * y3 + 1.71 * y4 - 0.43 * y5 + 0.69 * y6,
        bound - 1.81 * y6,
        -bound + 1.81 * y6,
    ]


HIRES = np.zeros((8, 8))
HIRES[0, :3] = -1.71, 0.43, 8.32
HIRES[1, :2] = 1.71, -8.75
HIRES[2, 2:5] = -10.03, 0.43, 0.035
HIRES[3, 1:4] = 8.32, 1.71, -1.12
HIRES[4, 4:7] = -1.745, 0.43, 0.43
HIRES[5, 3:7] = 0.69, 1.71, -0.43, 0.69
HIRES[6, 6], HIRES[7, 6] = -1.81, 1.81


def hires_jacobian(_t, y):
    m, a, b = HIRES.copy(), 280.0 * y[7], 280.0 * y[5]
    m[5, 5] -= a
    m[5, 7] = m[7, 7] = -b
    m[6, 5], m[6, 7], m[7, 5] = a, b, -a
    return m


def orego(_t, y):
    y0, y1, y2 = y.tolist()
    return [77.27 * (y1 + y0 * (1.0 - 8.375e-6 * y0 - y1)), (y2 - (1.0 + y0) * y1) / 77.27, 0.161 * (y0 - y2)]


def orego_jacobian(_t, y):
    y0, y1, _ = y.tolist()
    return [
        [77.27 * (1.0 - 1.675e-5 * y0 - y1), 77.27 * (1.0 - y0), 0.0],
        [-y1 / 77.27, -(1.0 + y0) / 77.27, 1.0 / 77.27],
        [0.161, 0.0, -0.161],
    ]


def vdpol(_t, y):
    y0, y1 = y.tolist()
    return [y1, ((1.0 - y0 * y0) * y1 - y0) * 1e6]


def vdpol_jacobian(_t, y):
    y0, y1 = y.tolist()
    return [[0.0, 1.0], [-(1.0 + 2.0 * y0 * y1) * 1e6, (1.0 - y0 * y0) * 1e6]]


def ring_diodes(t, y):
    _, _, y2, y3, y4, y5, y6 = y[:7]
    fast = 2.0 * math.sin(2e4 * math.pi * t)
    arguments = y2 - y4 - y6 - fast, -y3 + y5 - y6 - fast, y3 + y4 + y6 + fast, -y2 - y5 + y6 + fast
    # A guess of Newton's method may be so large that a current is infinite, which `math.exp` refuses.
    return (40.67286402e-9 * np.exp(17.7493332 * np.array(arguments))).tolist()


def ringmod(t, y):
    y = y.tolist()
    q0, q1, q2, q3 = (q - 40.67286402e-9 for q in ring_diodes(t, y))
    slow = 0.5 * math.sin(2e3 * math.pi * t)
    return [
        (y[7] - 0.5 * y[9] + 0.5 * y[10] + y[13] - y[0] / 25e3) / 1.6e-8,
        (y[8] - 0.5 * y[11] + 0.5 * y[12] + y[14] - y[1] / 25e3) / 1.6e-8,
        (y[9] - q0 + q3) * 1e10,
        (-y[10] + q1 - q2) * 1e10,
        (y[11] + q0 - q2) * 1e10,
        (-y[12] - q1 + q3) * 1e10,
        (-y[6] / 50.0 + q0 + q1 - q2 - q3) * 1e8,
        -y[0] / 4.45,
        -y[1] / 4.45,
        (0.5 * y[0] - y[2] - 17.3 * y[9]) / 5e-4,
        (-0.5 * y[0] + y[3] - 17.3 * y[10]) / 5e-4,
        (0.5 * y[1] - y[4] - 17.3 * y[11]) / 5e-4,
        (-0.5 * y[1] + y[5] - 17.3 * y[12]) / 5e-4,
        (-y[0] + slow - 86.3 * y[13]) / 2e-3,
        (-y[1] - 636.3 * y[14]) / 2e-3,
    ]


# The part of the Jacobian that is constant.
RINGMOD = np.zeros((15, 15))
for row, entries in enumerate((
    {0: -1 / 4e-4, 7: 1 / 1.6e-8, 9: -0.5 / 1.6e-8, 10: 0.5 / 1.6e-8, 13: 1 / 1.6e-8},
    {1: -1 / 4e-4, 8: 1 / 1.6e-8, 11: -0.5 / 1.6e-8, 12: 0.5 / 1.6e-8, 14: 1 / 1.6e-8},
    {9: 1e10}, {10: -1e10}, {11: 1e10}, {12: -1e10}, {6: -2e6}, {0: -1 / 4.45}, {1: -1 / 4.45},
    {0: 1e3, 2: -2e3, 9: -34600.0}, {0: -1e3, 3: 2e3, 10: -34600.0},
    {1: 1e3, 4: -2e3, 11: -34600.0}, {1: -1e3, 5: 2e3, 12: -34600.0},
    {0: -500.0, 13: -43150.0}, {1: -500.0, 14: -318150.0},
)):  # fmt: skip
    for column, entry in entries.items():
        RINGMOD[row, column] = entry
# Signs: of the current of diode i in the rate of voltage 2 + j, and of voltage 2 + j in the voltage of diode i.
RING_INTO = np.array([[-1, 0, 1, 0, 1], [0, 1, 0, -1, 1], [0, -1, -1, 0, -1], [1, 0, 0, 1, -1]])
RING_OF = np.array([[1, 0, -1, 0, -1], [0, -1, 0, 1, -1], [0, 1, 1, 0, 1], [-1, 0, 0, -1, 1]])
RING_RATES = np.array([1e10, 1e10, 1e10, 1e10, 1e8])


def ringmod_jacobian(t, y):
    slopes = 17.7493332 * np.array(ring_diodes(t, y.tolist()))
    m = RINGMOD.copy()
    m[2:7, 2:7] += RING_RATES[:, None] * (RING_INTO.T * slopes) @ RING_OF
    return m


K = [
    0.35, 26.6, 1.23e4, 8.6e-4, 8.2e-4, 1.5e4, 1.3e-4, 2.4e4, 1.65e4, 9e3, 0.022, 1.2e4, 1.88, 1.63e4, 4.8e6,
    3.5e-4, 0.0175, 1e8, 4.44e11, 1.24e3, 2.1, 5.78, 0.0474, 1.78e3, 3.12,
]  # fmt: skip


def pollu(_t, y):
    k, y = K, y.tolist()
    r1, r2, r3, r4, r5 = k[0] * y[0], k[1] * y[1] * y[3], k[2] * y[4] * y[1], k[3] * y[6], k[4] * y[6]
    r6, r7, r8, r9 = k[5] * y[6] * y[5], k[6] * y[8], k[7] * y[8] * y[5], k[8] * y[10] * y[1]
    r10, r11, r12, r13 = k[9] * y[10] * y[0], k[10] * y[12], k[11] * y[9] * y[1], k[12] * y[13]
    r14, r15, r16, r17 = k[13] * y[0] * y[5], k[14] * y[2], k[15] * y[3], k[16] * y[3]
    r18, r19, r20, r21 = k[17] * y[15], k[18] * y[15], k[19] * y[16] * y[5], k[20] * y[18]
    r22, r23, r24, r25 = k[21] * y[18], k[22] * y[0] * y[3], k[23] * y[18] * y[0], k[24] * y[19]
    return [
        r2 + r3 + r9 + r11 + r12 + r22 + r25 - r1 - r10 - r14 - r23 - r24,
        r1 + r21 - r2 - r3 - r9 - r12,
        r1 + r17 + r19 + r22 - r15,
        r15 - r2 - r16 - r17 - r23,
        2.0 * r4 + r6 + r7 + r13 + r20 - r3,
        r3 + 2.0 * r18 - r6 - r8 - r14 - r20,
        r13 - r4 - r5 - r6,
        r4 + r5 + r6 + r7,
        -r7 - r8,
        r7 + r9 - r12,
        r8 + r11 - r9 - r10,
        r9,
        r10 - r11,
        r12 - r13,
        r14,
        r16 - r18 - r19,
        -r20,
        r20,
        r23 + r25 - r21 - r22 - r24,
        r24 - r25,
    ]


def pollu_jacobian(_t, y):
    k, y, m = K, y.tolist(), np.zeros((20, 20))
    m[0, 0] = -k[0] - k[9] * y[10] - k[13] * y[5] - k[22] * y[3] - k[23] * y[18]
    m[0, 1] = k[1] * y[3] + k[2] * y[4] + k[8] * y[10] + k[11] * y[9]; m[0, 3] = k[1] * y[1] - k[22] * y[0]
    m[0, 4] = k[2] * y[1]; m[0, 5] = -k[13] * y[0]; m[0, 9] = k[11] * y[1]; m[0, 10] = k[8] * y[1] - k[9] * y[0]
    m[0, 12] = k[10]; m[0, 18] = k[21] - k[23] * y[0]; m[0, 19] = k[24]
    m[1, 0] = k[0]; m[1, 1] = -k[1] * y[3] - k[2] * y[4] - k[8] * y[10] - k[11] * y[9]; m[1, 3] = -k[1] * y[1]
    m[1, 4] = -k[2] * y[1]; m[1, 9] = -k[11] * y[1]; m[1, 10] = -k[8] * y[1]; m[1, 18] = k[20]
    m[2, 0] = k[0]; m[2, 2] = -k[14]; m[2, 3] = k[16]; m[2, 15] = k[18]; m[2, 18] = k[21]
    m[3, 0] = -k[22] * y[3]; m[3, 1] = -k[1] * y[3]; m[3, 2] = k[14]
    m[3, 3] = -k[1] * y[1] - k[15] - k[16] - k[22] * y[0]
    m[4, 1] = -k[2] * y[4]; m[4, 4] = -k[2] * y[1]; m[4, 5] = k[5] * y[6] + k[19] * y[16]
    m[4, 6] = 2.0 * k[3] + k[5] * y[5]; m[4, 8] = k[6]; m[4, 13] = k[12]; m[4, 16] = k[19] * y[5]
    m[5, 0] = -k[13] * y[5]; m[5, 1] = k[2] * y[4]; m[5, 4] = k[2] * y[1]
    m[5, 5] = -k[5] * y[6] - k[7] * y[8] - k[13] * y[0] - k[19] * y[16]; m[5, 6] = -k[5] * y[5]; m[5, 8] = -k[7] * y[5]
    m[5, 15] = 2.0 * k[17]; m[5, 16] = -k[19] * y[5]
    m[6, 5] = -k[5] * y[6]; m[6, 6] = -k[3] - k[4] - k[5] * y[5]; m[6, 13] = k[12]
    m[7, 5] = k[5] * y[6]; m[7, 6] = k[3] + k[4] + k[5] * y[5]; m[7, 8] = k[6]
    m[8, 5] = -k[7] * y[8]; m[8, 8] = -k[6] - k[7] * y[5]
    m[9, 1] = k[8] * y[10] - k[11] * y[9]; m[9, 8] = k[6]; m[9, 9] = -k[11] * y[1]; m[9, 10] = k[8] * y[1]
    m[10, 0] = -k[9] * y[10]; m[10, 1] = -k[8] * y[10]; m[10, 5] = k[7] * y[8]; m[10, 8] = k[7] * y[5]
    m[10, 10] = -k[8] * y[1] - k[9] * y[0]; m[10, 12] = k[10]
    m[11, 1] = k[8] * y[10]; m[11, 10] = k[8] * y[1]
    m[12, 0] = k[9] * y[10]; m[12, 10] = k[9] * y[0]; m[12, 12] = -k[10]
    m[13, 1] = k[11] * y[9]; m[13, 9] = k[11] * y[1]; m[13, 13] = -k[12]
    m[14, 0] = k[13] * y[5]; m[14, 5] = k[13] * y[0]
    m[15, 3] = k[15]; m[15, 15] = -k[17] - k[18]
    m[16, 5] = -k[19] * y[16]; m[16, 16] = -k[19] * y[5]
    m[17, 5] = k[19] * y[16]; m[17, 16] = k[19] * y[5]
    m[18, 0] = k[22] * y[3] - k[23] * y[18]; m[18, 3] = k[22] * y[0]; m[18, 18] = -k[20] - k[21] - k[23] * y[0]
    m[18, 19] = k[24]
    m[19, 0] = k[23] * y[18]; m[19, 18] = k[23] * y[0]; m[19, 19] = -k[24]
    return m


# Vector field, Jacobian, t1, y0, and the absolute tolerances at a relative tolerance of 1.
PROBLEMS = {
    "rober-40": (rober, rober_jacobian, 40.0, [1.0, 0.0, 0.0], [1e-2, 1e-6, 1e-2]),
    "rober-1e11": (rober, rober_jacobian, 1e11, [1.0, 0.0, 0.0], [1e-8, 1e-14, 1e-8]),
    "hires": (hires, hires_jacobian, 321.8122, [1.0, *[0.0] * 6, 0.0057], [1e-4] * 8),
    "orego": (orego, orego_jacobian, 360.0, [1.0, 2.0, 3.0], [1e-2] * 3),
    "ringmod": (ringmod, ringmod_jacobian, 2e-4, [0.0] * 15, [*[1e-4] * 7, *[1e-9] * 2, *[1e-7] * 6]),
    "vdpol": (vdpol, vdpol_jacobian, 2.0, [2.0, 0.0], [1.0] * 2),
    "pollu": (
        pollu, pollu_jacobian, 60.0,
        [0.0, 0.2, 0.0, 0.04, 0.0, 0.0, 0.1, 0.3, 0.01, *[0.0] * 7, 0.007, 0.0, 0.0, 0.0], [1e-7] * 20,
    ),
}  # fmt: skip


def solve(problem, method, rtol):
    f, jacobian, t1, y0, scale = PROBLEMS[problem]
    atol = np.array(scale) * rtol
    solution = solve_ivp(f, (0.0, t1), y0, method=method, jac=jacobian, rtol=rtol, atol=atol)
    if not solution.success:
        return f"error {solution.message}"
    numbers = (len(solution.t) - 1, solution.nfev, int(solution.nlu))
    return " ".join(map(repr, (*numbers, *solution.y[:, -1].tolist())))


def main():
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        problem, method, rtol = line.split()
        print(solve(problem, method, float(rtol)), flush=True)


if __name__ == "__main__":
    main()
